// The page of an open room: joins a hub by the wire `millrace-room.1` (Documentation/room.md), sends the microphone, the camera or the
// screen, plays what comes, and shows the transcript, the state and the timing of bots (Documentation/dialog.md).
//
// Everything that comes from others is shown as text, isolated from what is around it. Tests read `window.millrace`; nothing else is global.
'use strict';

(() => {

// MARK: Constants

const PROTOCOL = 'millrace-room.1';
const VERSION = 1;
// How many peers are received at a time. The hub takes up to 16 media of each kind.
const AUDIO_SLOTS = 8;
const VIDEO_SLOTS = 4;
// The hub answers within 10 s, with an error if need be; later than this the connection is lost.
const ANSWER_MS = 12_000;
const OPEN_MS = 8_000;
// After a change of network the connection is either heard soon, or made again.
const PROBE_MS = 4_000;
const FIRST_PAUSE_MS = 500;
const MOST_PAUSE_MS = 8_000;
// Media interrupted this long restart ICE, up to `RESTARTS` times in a row; then the room is joined again.
const INTERRUPTED_MS = 2_000;
const RESTART_MS = 5_000;
const RESTARTS = 3;
const TICK_MS = 40;
// Peak amplitudes: a voice begins above the first and has ended below the second, -46 and -54 dBFS.
const VOICE = 0.005;
const SILENCE = 0.002;
// Pauses shorter than this are part of a voice.
const PAUSE_MS = 200;
// A person's voice belongs to the end of speech that a bot reports within this time.
const NOTICED_MS = 3_000;
const KEPT_EVENTS = 500;
const KEPT_LINES = 500;
const KEPT_TURNS = 20;
const KEPT_TIMES = 8;
// What one line shows, and what is kept of a message, at most: nobody reads more.
const KEPT_CHARACTERS = 20_000;
const KEPT_MESSAGE = 2_000;
// What a hub takes of a file: its size, the characters of its name, and the bytes of its type.
const FILE_BYTES = 10_000_000;
const FILE_NAME = 255;
const FILE_TYPE = 127;
// By how much two clocks may drift apart.
const CLOCK_DRIFT = 1e-4;
// Times that a bot tells are shown within these: clocks differ by little, and nothing takes longer than an hour.
const CLOCK_ERROR_MS = 100;
const LONGEST_MS = 3_600_000;
// An answer that comes later than this is not waited for: `answer` of dialog.turn.
const LONGEST_TURN_MS = 20_000;
const ESCAPE_MS = 1_500;
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
// How long a bot that was cut off is muted. What is in flight is the network's delay and the jitter buffer: 66 to 101 ms on one machine.
const IN_FLIGHT_MS = 300;
// The label of data that is an event of a bot.
const BOT_LABEL = 'dialog';
// What has no place in a name: it breaks lines, or has text read in another direction (UAX #9), so that one name looks like another.
const DISGUISES = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const now = () => performance.now();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const textOf = (value) => (typeof value === 'string' ? value : '');
const listOf = (value) => (Array.isArray(value) ? value.filter(isObject) : []);
const isPossible = (ms) => Number.isFinite(ms) && ms >= -CLOCK_ERROR_MS && ms <= LONGEST_MS;
// A name as it is shown, and that of a file also as it is saved.
const plainName = (text) => text.replace(DISGUISES, '\ufffd');
const plainFileName = (text) => text.replace(DISGUISES, '_');

// MARK: Document

const byID = (id) => document.getElementById(id);
const on = (target, type, action) => target.addEventListener(type, action);

// Makes an element: only text goes in, never markup.
function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function option(value, text) {
  const element = make('option', '', text);
  element.value = value;
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setKey(button, text, key) {
  if (button.textContent !== text + key) button.replaceChildren(text, make('kbd', '', key));
}

// What screen readers say: only what is final.
function announce(text) {
  const line = make('p', '', text);
  byID('announcer').append(line);
  setTimeout(() => line.remove(), 5_000);
}

// The size of a file, as people say it.
function sizeOf(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

// A payload, as much of it as is kept.
function shortened(payload) {
  const { text } = payload;
  return typeof text === 'string' && text.length > KEPT_MESSAGE ? { ...payload, text: text.slice(0, KEPT_MESSAGE) } : payload;
}

// The first characters of a text, without cutting one in two.
const cut = (text, most) => (text.length <= most ? text : Array.from(text).slice(0, most).join(''));

const seconds = (ms) => (ms < 995 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`);

// MARK: Address

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

// `?room=…&name=…&role=…&auto=1&mic=0&camera=1#room&token=…`. What is behind `#` is never sent to a server.
function readAddress() {
  const query = new URLSearchParams(location.search);
  const found = {
    room: query.get('room'), name: query.get('name'), role: query.get('role'), token: null,
    isAutomatic: query.get('auto') === '1', mic: query.get('mic') !== '0', camera: query.get('camera') === '1',
  };
  for (const part of location.hash.slice(1).split('&')) {
    const at = part.indexOf('=');
    const value = decoded(part.slice(at + 1));
    if (at < 0 && part) found.room = value;
    if (part.startsWith('room=')) found.room = value;
    if (part.startsWith('token=')) found.token = value;
  }
  if (found.token !== null) hideToken(found.room);
  return found;
}

// The address bar, the history and a copied link shall not have the token.
function hideToken(room) {
  const rest = location.hash && room ? `#${encodeURIComponent(room)}` : '';
  history.replaceState(null, '', location.pathname + location.search + rest);
}

// What a token says of its user; it is checked by the hub.
function claims(token) {
  try {
    const part = token.split('.')[0].replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(part), (letter) => letter.charCodeAt(0));
    const value = JSON.parse(new TextDecoder().decode(bytes));
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

// A user without a token: 64 random bits.
const randomUser = () => `web-${[...crypto.getRandomValues(new Uint32Array(2))].map((word) => word.toString(36)).join('')}`;

function hubAddress() {
  const address = new URL('room', document.baseURI);
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  address.search = '';
  address.hash = '';
  return address.href;
}

// MARK: Errors in words

const UPDATE = 'Use a current Chromium or Firefox.';
const ASK = 'Ask whoever invited you for a new one.';
const HUB_WORDS = {
  badToken: `Your link does not open this room. ${ASK}`,
  tokenExpired: `Your link has expired. ${ASK}`,
  tokenUsed: `Your link lets in once, and has been used. ${ASK}`,
  duplicate: 'You are in this room already, in another window or on another device. Leave there first.',
  forbidden: 'Your link does not allow this. Join to watch and listen, or ask for another link.',
  roomFull: 'The room is full. Try again when somebody has left.',
  tooManyRequests: 'The hub is busy.',
  unknownVersion: 'This page is not of the hub\'s version. Load the page again.',
  badOffer: `The hub cannot use what this browser offers for sound and pictures. ${UPDATE}`,
  noCommonCodec: `The hub and this browser have no codec in common. ${UPDATE}`,
  noMedia: 'This hub carries messages only, without sound and pictures.',
};
// Errors of joining that waiting does not cure.
const FINAL = new Set(['badToken', 'tokenExpired', 'tokenUsed', 'duplicate', 'forbidden', 'unknownVersion', 'badPayload', 'unknownOp']);
const KICK_WORDS = {
  removed: 'You were removed from the room.',
  ended: 'The room was closed for everybody.',
  replaced: 'You have joined from another window or device; this one has left.',
  expired: `Your link has expired, so you are out of the room. ${ASK}`,
};
const DEVICE_WORDS = {
  NotAllowedError: 'is not allowed. Allow it for this site, beside the address, and try again.',
  NotFoundError: 'was not found. Connect one, and try again.',
  NotReadableError: 'is in use by another program, or does not work. Close the other program, and try again.',
  OverconstrainedError: 'is not connected any more. Choose another one under "Devices".',
  InsecureError: 'cannot be used: browsers give it to secure pages only. Open this page by https, or on the hub\'s machine by http://localhost.',
};

class HubError extends Error {
  constructor(name, text, afterMs) {
    super(text);
    this.name = textOf(name) || 'error';
    this.afterMs = Number.isFinite(afterMs) ? afterMs : null;
  }

  get words() { return HUB_WORDS[this.name] ?? `The hub has refused this: ${this.message || this.name}.`; }
  get isFinal() { return FINAL.has(this.name); }
}

const lost = () => new HubError('lost', 'the connection to the hub is lost');

// MARK: Wire

// A connection to the hub: requests with ids, each answered once, and pushes.
class Wire {
  #socket;
  #next = 1;
  #waiting = new Map();
  #end;
  onPush = () => {};

  constructor(address) {
    this.closed = new Promise((resolve) => { this.#end = resolve; });
    this.#socket = new WebSocket(address, PROTOCOL);
    this.opened = new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.close(), OPEN_MS);
      this.#socket.onopen = () => { clearTimeout(timer); resolve(); };
      this.closed.then(() => { clearTimeout(timer); reject(lost()); });
    });
    this.opened.catch(() => {});
    this.#socket.onmessage = (message) => this.#take(message.data);
    this.#socket.onclose = () => this.#finish();
  }

  request(op, payload = {}, patience = ANSWER_MS) {
    if (this.#socket.readyState !== WebSocket.OPEN) return Promise.reject(lost());
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.close(), patience);
      this.#waiting.set(id, { resolve, reject, timer });
      this.#socket.send(JSON.stringify({ id, op, payload }));
    });
  }

  // Closes; what waits fails at once, as the other end may never confirm.
  close() {
    this.#socket.close(1000);
    this.#finish();
  }

  #finish() {
    // What still comes of a connection that was given up is of a room that was left.
    this.#socket.onmessage = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject, timer } of waiting) { clearTimeout(timer); reject(lost()); }
    this.#end();
  }

  #take(text) {
    let message;
    try { message = JSON.parse(text); } catch { return; }
    if (!isObject(message)) return;
    const payload = isObject(message.payload) ? message.payload : {};
    if (typeof message.event === 'string') return this.onPush(message.event, payload);
    const waiting = this.#waiting.get(message.answer);
    if (!waiting) return;
    this.#waiting.delete(message.answer);
    clearTimeout(waiting.timer);
    if (message.ok === true) return waiting.resolve(payload);
    const error = isObject(message.error) ? message.error : {};
    waiting.reject(new HubError(error.name, textOf(error.text), error.afterMs));
  }
}

// MARK: Media

// The codecs every end of a room has, so that what one sends all can receive.
function prefer(transceiver, kind) {
  const wanted = kind === 'audio' ? ['audio/opus'] : ['video/VP8', 'video/H264', 'video/rtx'];
  try {
    const codecs = RTCRtpReceiver.getCapabilities(kind).codecs.filter((codec) => wanted.includes(codec.mimeType));
    codecs.sort((a, b) => wanted.indexOf(a.mimeType) - wanted.indexOf(b.mimeType));
    if (codecs.length > 0) transceiver.setCodecPreferences(codecs);
  } catch {
    // Older browsers have no preferences; they offer all they have.
  }
}

// The session with the hub. One offer makes all media there will be; what is sent later takes one of them.
class Media {
  #pc;
  #request;
  #senders = {};
  #isBusy = false;
  #isAgain = false;
  #restarts = 0;
  #timer = null;
  #isClosed = false;
  onReceivers = () => {};
  onState = () => {};
  onProblem = () => {};
  onLost = () => {};

  // mode: `mix` or `forward`; request: as that of the wire.
  constructor(mode, servers, request) {
    this.#request = request;
    this.#pc = new RTCPeerConnection({ iceServers: servers, bundlePolicy: 'max-bundle' });
    this.#pc.onicecandidate = (event) => this.#pass(event.candidate);
    this.#pc.onconnectionstatechange = () => this.#follow();
    this.#pc.oniceconnectionstatechange = () => this.#follow();
    this.#senders.audio = this.#add('audio', mode === 'mix' ? 'sendrecv' : 'sendonly').sender;
    if (mode !== 'forward') return;
    this.#senders.video = this.#add('video', 'sendonly').sender;
    for (let slot = 0; slot < AUDIO_SLOTS; slot++) this.#add('audio', 'recvonly');
    for (let slot = 0; slot < VIDEO_SLOTS; slot++) this.#add('video', 'recvonly');
  }

  get state() {
    const state = this.#pc.connectionState ?? this.#pc.iceConnectionState;
    return state === 'completed' ? 'connected' : state;
  }
  get hasVideo() { return this.#senders.video !== undefined; }

  #add(kind, direction) {
    const transceiver = this.#pc.addTransceiver(kind, { direction });
    prefer(transceiver, kind);
    return transceiver;
  }

  // Sends a track, or nothing; without a new offer.
  async send(kind, track) {
    const sender = this.#senders[kind];
    if (!sender || this.#isClosed) return;
    await sender.replaceTrack(track).catch((error) => this.onProblem(`Nothing can be sent: ${error.message}`));
  }

  start() { return this.#negotiate(false); }

  restart() {
    if (this.#isClosed) return;
    this.#restarts += 1;
    if (this.#restarts > RESTARTS) return this.onLost();
    this.#after(RESTART_MS);
    this.#negotiate(true);
  }

  async #negotiate(isRestart) {
    if (this.#isBusy) { this.#isAgain = true; return; }
    this.#isBusy = true;
    try {
      await this.#offer(isRestart);
      while (this.#isAgain && !this.#isClosed) { this.#isAgain = false; await this.#offer(true); }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isBusy = false;
    }
  }

  async #offer(isRestart) {
    const offer = await this.#pc.createOffer({ iceRestart: isRestart });
    await this.#pc.setLocalDescription(offer);
    const answer = await this.#answer();
    if (this.#isClosed) return;
    await this.#pc.setRemoteDescription({ type: 'answer', sdp: textOf(answer.sdp) });
    this.onReceivers(this.receivers());
  }

  async #answer() {
    for (;;) {
      try {
        return await this.#request('sdp', { type: 'offer', sdp: this.#pc.localDescription.sdp });
      } catch (error) {
        if (error.name !== 'tooManyRequests' || this.#isClosed) throw error;
        await sleep(Math.max(error.afterMs ?? 0, FIRST_PAUSE_MS));
      }
    }
  }

  #fail(error) {
    if (this.#isClosed || error.name === 'lost' || error.name === 'notInRoom') return;
    this.onProblem(error instanceof HubError ? error.words : `Sound and pictures could not be connected: ${error.message}`);
  }

  // An empty candidate ends a generation of them; none ends them all.
  #pass(candidate) {
    const isLast = !candidate || !candidate.candidate;
    const payload = isLast ? {} : { candidate: candidate.candidate, mid: candidate.sdpMid ?? undefined };
    this.#request('candidate', payload).catch(() => {});
  }

  receivers() {
    const result = new Map();
    for (const { mid, receiver, currentDirection } of this.#pc.getTransceivers()) {
      const receives = currentDirection === 'recvonly' || currentDirection === 'sendrecv';
      if (mid !== null && receives) result.set(mid, receiver);
    }
    return result;
  }

  #follow() {
    if (this.#isClosed) return;
    const state = this.state;
    if (state === 'connected') {
      this.#restarts = 0;
      this.#after(null);
    } else if (state === 'disconnected' && this.#timer === null) {
      this.#after(INTERRUPTED_MS);
    } else if (state === 'failed') {
      // Where ICE works it was DTLS, and only another session helps. Both states tell of one failure, which is answered once.
      if (this.#pc.iceConnectionState !== 'failed') this.onLost();
      else if (!this.#isBusy) this.restart();
      else if (this.#timer === null) this.#after(RESTART_MS);
    }
    this.onState(state);
  }

  #after(ms) {
    clearTimeout(this.#timer);
    this.#timer = ms === null ? null : setTimeout(() => this.#look(), ms);
  }

  #look() {
    this.#timer = null;
    // A restart of what works changes no state.
    if (this.state === 'connected') this.#restarts = 0; else this.restart();
  }

  async stats() { return this.#isClosed ? [] : [...(await this.#pc.getStats()).values()]; }

  close() {
    this.#isClosed = true;
    this.#after(null);
    this.#pc.close();
  }
}

function summary(reports) {
  const empty = () => ({ packets: 0, bytes: 0, lost: 0, frames: 0 });
  const result = {
    inbound: { audio: empty(), video: empty() }, outbound: { audio: empty(), video: empty() }, rttMs: null,
  };
  for (const report of reports) {
    if (report.type === 'inbound-rtp' && result.inbound[report.kind]) count(result.inbound[report.kind], report, 'Received', 'framesDecoded');
    if (report.type === 'outbound-rtp' && result.outbound[report.kind]) count(result.outbound[report.kind], report, 'Sent', 'framesSent');
    const isPair = report.type === 'candidate-pair' && (report.nominated || report.selected);
    if (isPair && Number.isFinite(report.currentRoundTripTime)) result.rttMs = report.currentRoundTripTime * 1000;
  }
  return result;
}

function count(sum, report, what, frames) {
  sum.packets += report[`packets${what}`] ?? 0;
  sum.bytes += report[`bytes${what}`] ?? 0;
  sum.lost += report.packetsLost ?? 0;
  sum.frames += report[frames] ?? 0;
}

// MARK: Devices

// The microphone, the camera and the screen. They stay open while the room is joined again.
class Devices {
  mic = null;
  camera = null;
  source = null;
  micID = '';
  cameraID = '';
  onEnded = () => {};

  get canCapture() { return window.isSecureContext && navigator.mediaDevices?.getUserMedia !== undefined; }
  get canShare() { return window.isSecureContext && navigator.mediaDevices?.getDisplayMedia !== undefined; }

  async openMic() {
    const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: { ideal: 1 } };
    if (this.micID) audio.deviceId = { exact: this.micID };
    const track = await this.#open({ audio });
    this.closeMic();
    this.mic = this.#watched(track, 'mic');
    return track;
  }

  async openCamera() {
    const video = { width: { ideal: 640 }, height: { ideal: 360 }, frameRate: { ideal: 24 } };
    if (this.cameraID) video.deviceId = { exact: this.cameraID };
    return this.#show(await this.#open({ video }), 'camera');
  }

  async openScreen() {
    const stream = await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: { max: 15 } }, audio: false });
    const track = stream.getVideoTracks()[0];
    track.contentHint = 'detail';
    return this.#show(track, 'screen');
  }

  async #open(constraints) {
    if (!this.canCapture) throw { name: 'InsecureError' };
    return (await navigator.mediaDevices.getUserMedia(constraints)).getTracks()[0];
  }

  #show(track, source) {
    this.closePicture();
    this.camera = this.#watched(track, 'picture');
    this.source = source;
    return track;
  }

  // A track that ends by itself: a cable was pulled, or the browser's own "stop" was pressed.
  #watched(track, what) {
    track.onended = () => this.onEnded(what);
    return track;
  }

  closeMic() { this.mic?.stop(); this.mic = null; }
  closePicture() { this.camera?.stop(); this.camera = null; this.source = null; }
  close() { this.closeMic(); this.closePicture(); }

  async list() { return (await navigator.mediaDevices?.enumerateDevices().catch(() => null)) ?? []; }
}

function deviceWords(what, error) {
  const words = DEVICE_WORDS[error.name];
  return words ? `The ${what} ${words}` : `The ${what} cannot be used: ${error.message || error.name}.`;
}

// MARK: Sound

class Voice {
  level = 0;
  onset = -Infinity;
  last = -Infinity;

  // at: the time of the first sample above `VOICE` in what was measured.
  take(peak, at, time) {
    this.level = peak;
    if (peak >= VOICE) {
      if (at - this.last > PAUSE_MS) this.onset = at;
      this.last = time;
    } else if (peak > SILENCE && time - this.last <= PAUSE_MS) {
      this.last = time;
    }
  }
}

// Plays and measures: a lane for each medium that is received, and one for the microphone.
class Sound {
  #context = null;
  #lanes = new Map();
  #samples = new Float32Array(2048);
  onBlocked = () => {};

  // Called within a press of a button, so that browsers allow it.
  open() {
    this.#context ??= new AudioContext({ latencyHint: 'interactive' });
    this.#context.resume().catch(() => {});
  }

  add(key, receiver) {
    const known = this.#lanes.get(key);
    if (known?.receiver === receiver) return;
    const element = new Audio();
    element.autoplay = true;
    element.srcObject = new MediaStream([receiver.track]);
    this.#lanes.set(key, { receiver, element, ...this.#analyse(element.srcObject) });
    this.#play(element);
  }

  #play(element) { element.play().catch((error) => { if (error.name === 'NotAllowedError') this.onBlocked(); }); }

  // Mutes a medium until what is in flight has come in, or until `unmute`.
  mute(key) {
    const lane = this.#lanes.get(key);
    if (!lane?.element) return;
    clearTimeout(lane.muteTimer);
    lane.element.muted = true;
    lane.muteTimer = setTimeout(() => this.unmute(key), IN_FLIGHT_MS);
  }

  unmute(key) {
    const lane = this.#lanes.get(key);
    if (!lane?.element?.muted) return;
    clearTimeout(lane.muteTimer);
    lane.element.muted = false;
    // Firefox may pause what becomes audible when nobody has pressed anything.
    if (lane.element.paused) this.#play(lane.element);
  }

  // Measures the own microphone.
  listen(key, track) {
    this.remove(key);
    if (track) this.#lanes.set(key, { receiver: null, element: null, ...this.#analyse(new MediaStream([track])) });
  }

  #analyse(stream) {
    if (!this.#context) return { source: null, analyser: null };
    const source = this.#context.createMediaStreamSource(stream);
    const analyser = this.#context.createAnalyser();
    analyser.fftSize = this.#samples.length;
    source.connect(analyser);
    return { source, analyser };
  }

  // The peak of the last 40 ms, and when its first sample above `VOICE` was heard.
  measure(key, time) {
    const lane = this.#lanes.get(key);
    if (lane && this.#context?.state === 'running') return this.#scan(lane.analyser, time);
    return { peak: lane?.element && !lane.element.paused ? Sound.#told(lane.receiver, time) : 0, at: time };
  }

  // Browsers may play without a press, but measure nothing: the level of the last packet played.
  static #told(receiver, time) {
    const [last] = receiver.getSynchronizationSources?.() ?? [];
    const isNow = last && performance.timeOrigin + time - last.timestamp < 300;
    return isNow ? last.audioLevel ?? 0 : 0;
  }

  #scan(analyser, time) {
    analyser.getFloatTimeDomainData(this.#samples);
    let peak = 0;
    let first = -1;
    for (let index = 0; index < this.#samples.length; index++) {
      const size = Math.abs(this.#samples[index]);
      if (size > peak) peak = size;
      if (first < 0 && size >= VOICE) first = index;
    }
    const behind = first < 0 ? 0 : this.#samples.length - first;
    return { peak, at: time - (behind * 1000) / this.#context.sampleRate };
  }

  async unblock() {
    this.open();
    await Promise.allSettled([...this.#lanes.values()].map((lane) => lane.element?.play()));
  }

  remove(key) {
    const lane = this.#lanes.get(key);
    if (!lane) return;
    this.#lanes.delete(key);
    lane.source?.disconnect();
    if (lane.element) { lane.element.pause(); lane.element.srcObject = null; }
  }

  clear() { for (const key of [...this.#lanes.keys()]) if (key !== 'mic') this.remove(key); }

  // Gives the sound device back.
  close() {
    for (const key of [...this.#lanes.keys()]) this.remove(key);
    this.#context?.close().catch(() => {});
    this.#context = null;
  }
}

// The length of a meter, from a peak: -60 to 0 dBFS.
const meterOf = (peak) => (peak > 0 ? Math.min(Math.max(1 + Math.log10(peak) / 3, 0), 1) : 0);

// MARK: Timing of turns

// Puts a peer's times on the clock of this page. An event comes late, never early, so the smallest difference is the nearest to the truth.
class PeerClock {
  #offset = Infinity;
  #last = 0;

  local(event, arrival) {
    // A state that is repeated for a member that has just joined was reached long ago.
    if (!Number.isSafeInteger(Math.round(event.time * 1000)) || event.repeated === true) return arrival;
    const difference = arrival - event.time * 1000;
    const least = this.#offset + (arrival - this.#last) * CLOCK_DRIFT;
    this.#last = arrival;
    // Far off: another run of the graph has begun.
    this.#offset = Math.abs(difference - least) > 10_000 ? difference : Math.min(difference, least);
    return event.time * 1000 + this.#offset;
  }
}

const STEPS = { noticed: 'noticed', final: 'transcript', token: 'token', audio: 'audio', heard: 'heard' };

// One turn: the marks are times of this page's clock.
class Turn {
  marks = {};
  isOver = false;
  isCut = false;

  constructor(number) { this.number = number; }

  mark(name, time) { this.marks[name] ??= time; }

  // What a user waits for begins at the end of speech; a detector knows it, a service tells it later.
  get start() { return this.marks.spoken ?? this.marks.noticed ?? this.marks.final ?? null; }
  get isShown() { return this.start !== null && Object.keys(this.marks).length > (this.marks.spoken === undefined ? 0 : 1); }
  get isAnswering() { return this.marks.token !== undefined || this.marks.audio !== undefined; }
  get isOpen() { return !this.isOver && this.marks.heard === undefined; }

  // The steps so far, in the order of their times, and as they follow from each other within a millisecond; `ms` since the start.
  get steps() {
    const start = this.start;
    const marks = Object.keys(STEPS).filter((name) => this.marks[name] !== undefined)
      .map((name) => ({ name, ms: Math.max(0, this.marks[name] - start) })).sort((a, b) => Math.round(a.ms) - Math.round(b.ms));
    const end = marks.findIndex((mark) => mark.name === 'heard');
    return end < 0 ? marks : marks.slice(0, end + 1);
  }

  get text() {
    let before = 0;
    const words = [];
    for (const { name, ms } of this.steps) {
      if (ms > 0) words.push(`${STEPS[name]} ${Math.round(ms - before)}`);
      before = ms;
    }
    if (words.length > 0) words[words.length - 1] += ' ms';
    return [...words, ...(this.isCut ? ['interrupted'] : [])].join(', ');
  }

  get copy() { return { number: this.number, isCut: this.isCut, isOver: this.isOver, steps: this.steps }; }
}

// Draws the last turns, the newest first, on a common scale.
class Waterfall {
  #turns = [];
  #rows = new Map();
  #count = 0;

  begin() {
    const turn = new Turn(++this.#count);
    this.#turns.push(turn);
    return turn;
  }

  clear() {
    for (const turn of [...this.#turns]) this.#drop(turn);
    this.#count = 0;
    byID('timing').hidden = true;
    byID('no-turns').hidden = false;
  }

  // Its place is there as soon as a bot is.
  expect(hasBots) { byID('timing').hidden = !hasBots && this.#rows.size === 0; }

  get copies() { return this.#turns.filter((turn) => turn.isShown).map((turn) => turn.copy); }

  // Draws what has changed: all turns, or only those that still grow.
  draw(time, isAll) {
    for (const turn of this.#turns) if (turn.isOpen && turn.start !== null && time - turn.start > LONGEST_TURN_MS) turn.isOver = isAll = true;
    if (!isAll && !this.#turns.some((turn) => turn.isOpen && turn.isShown)) return;
    for (const old of this.#turns.slice(0, -KEPT_TURNS)) this.#drop(old);
    const shown = this.#turns.filter((turn) => turn.isShown);
    for (const turn of this.#turns) if (!turn.isShown) this.#hide(turn);
    const lengths = shown.map((turn) => this.#length(turn, time));
    const scale = Math.max(1000, ...lengths);
    byID('no-turns').hidden = shown.length > 0;
    shown.forEach((turn, index) => this.#drawRow(turn, lengths[index], scale));
  }

  #hide(turn) {
    this.#rows.get(turn)?.row.remove();
    this.#rows.delete(turn);
  }

  #drop(turn) {
    this.#turns.splice(this.#turns.indexOf(turn), 1);
    this.#hide(turn);
  }

  #length(turn, time) {
    const last = turn.steps.at(-1)?.ms ?? 0;
    return turn.isOpen ? Math.max(last, time - turn.start) : last;
  }

  #row(turn) {
    const known = this.#rows.get(turn);
    if (known) return known;
    const parts = {
      row: make('li'), bar: make('div', 'bar'), steps: make('span', 'steps'), sum: make('span', 'spoken-only'), total: make('span', 'total'),
    };
    parts.bar.setAttribute('aria-hidden', 'true');
    const number = make('span', 'number', String(turn.number));
    number.prepend(make('span', 'spoken-only', 'Turn '));
    // As it is read out: the steps, and then their sum.
    parts.row.append(number, parts.bar, parts.steps, parts.sum, parts.total);
    byID('turns').prepend(parts.row);
    this.#rows.set(turn, parts);
    return parts;
  }

  #drawRow(turn, length, scale) {
    const { bar, steps, sum, total } = this.#row(turn);
    const isUnheard = turn.marks.heard === undefined && turn.isOver;
    const pieces = [];
    let before = 0;
    for (const { name, ms } of turn.steps) { pieces.push(this.#piece(name, before, ms, scale)); before = ms; }
    if (turn.isOpen) pieces.push(this.#piece('heard', before, length, scale, ' open'));
    bar.replaceChildren(...pieces);
    setText(sum, isUnheard ? 'no answer heard' : 'in all');
    setText(total, isUnheard ? '–' : seconds(length));
    setText(steps, turn.text);
  }

  #piece(name, from, to, scale, more = '') {
    const piece = make('i', name + more);
    piece.style.left = `${(from / scale) * 100}%`;
    piece.style.width = `${(Math.max(0, to - from) / scale) * 100}%`;
    return piece;
  }
}

// MARK: Log

class Log {
  #list = byID('log');
  #isFollowing = true;

  // A tile that appears takes height from the log, which shall show its end nevertheless.
  constructor() {
    on(this.#list, 'scroll', () => { this.#isFollowing = this.#isAtEnd; });
    if (window.ResizeObserver) new ResizeObserver(() => { if (this.#isFollowing) this.#follow(); }).observe(this.#list);
  }

  add(who, text, className = '') {
    const isAtEnd = this.#isAtEnd;
    const row = make('li', className);
    const what = make('span', 'what');
    const words = make('span', 'text', text);
    what.append(words);
    row.append(make('span', 'who', who), what);
    this.#list.append(row);
    if (this.#list.childElementCount > KEPT_LINES) this.#list.firstElementChild.remove();
    if (isAtEnd) this.#follow();
    return { row, what, words };
  }

  set(line, text) {
    const isAtEnd = this.#isAtEnd;
    setText(line.words, text);
    if (isAtEnd) this.#follow();
  }

  // Text that can be pressed to save a file. A press never leaves the page: `download` keeps an error from being shown in its place.
  link(line, href, name, more) {
    const isAtEnd = this.#isAtEnd;
    const link = make('a', 'text', name);
    link.href = href;
    link.download = name;
    line.words.replaceChildren(link, ` (${more})`);
    if (isAtEnd) this.#follow();
  }

  mark(line, text) {
    if (line.mark) setText(line.mark, text);
    else line.what.append((line.mark = make('span', 'mark', text)));
  }

  unmark(line) {
    line.mark?.remove();
    line.mark = null;
  }

  // name: whom it is about, before the text.
  note(text, name) {
    const line = this.add('', text, 'note');
    if (name !== undefined) line.words.prepend(make('bdi', '', name));
    return line;
  }

  clear() { this.#list.replaceChildren(); }

  // Whoever has scrolled back to read is left there.
  get #isAtEnd() { return this.#list.scrollHeight - this.#list.scrollTop - this.#list.clientHeight < 60; }
  #follow() { this.#list.scrollTop = this.#list.scrollHeight; }
}

// MARK: Bots

const STATE_WORDS = {
  idle: 'Not started', connecting: 'Connecting', listening: 'Listening', hearing: 'Hearing', thinking: 'Thinking',
  responding: 'Speaking', draining: 'Speaking', suspecting: 'Speaking, hears a voice', yielding: 'Interrupted',
  reconnecting: 'Reconnecting', closing: 'Ending', closed: 'Ended',
};

// What a bot tells of its dialogue: lines of the log, its state, and the times of turns.
class Dialogue {
  #room;
  #person;
  #clock = new PeerClock();
  #turn = null;
  // Whose answer is here: while a user interrupts, the turn before.
  #answered = null;
  #said = null;
  #reply = null;
  #hasTurns = false;
  state = '';
  times = new Map();

  // room: has `log`, `waterfall`, `voiceBefore(time)`, `speaker()`, `mute(person)`, `unmute(person)`; person: the bot.
  constructor(room, person) {
    this.#room = room;
    this.#person = person;
  }

  take(event, arrival) {
    const time = this.#clock.local(event, arrival);
    switch (event.event) {
      case 'state': if (!this.#hasTurns) this.state = textOf(event.state); break;
      case 'turn': this.#hasTurns = true; this.state = textOf(event.to); break;
      case 'speechStarted': this.#speechStarted(); break;
      case 'speechEnded': this.#speechEnded(event, time); break;
      case 'transcript': this.#transcript(event, time); break;
      case 'reply': this.#replyText(event, time); break;
      case 'replyStarted': this.#markAudio(time); break;
      // speech.play: the first byte came that long ago.
      case 'started': if (isPossible(event.waited)) this.#markAudio(time - event.waited); break;
      case 'interrupted': this.#cut(event); this.#mute(event); break;
      case 'replyAudible': this.#room.unmute(this.#person); break;
      case 'bargeIn': this.#cut({}); break;
      case 'heard': if (event.whole === false) this.#cut(event); break;
      case 'latency': this.#measured(event); break;
      case 'answer': if (event.ok !== false) break; // falls through
      case 'error': case 'commandRefused': this.#room.log.note(`: ${textOf(event.text)}`, this.#person.name); break;
      default: break;
    }
  }

  // MARK: Times

  // The turn that a mark of the user's speech belongs to: a new one where the answer to the last has begun.
  #openTurn() {
    if (this.#turn && !this.#turn.isOver && !this.#turn.isAnswering) return this.#turn;
    return this.#newTurn();
  }

  #newTurn() {
    if (this.#turn) this.#turn.isOver = true;
    this.#turn = this.#room.waterfall.begin();
    return this.#turn;
  }

  #speechStarted() {
    const turn = this.#openTurn();
    // Speech that goes on ends later.
    delete turn.marks.spoken;
    delete turn.marks.noticed;
  }

  // A detector says how long ago the speech ended; a service's word is when it noticed.
  #speechEnded(event, time) {
    const turn = this.#openTurn();
    if (isPossible(event.delay)) { turn.marks.spoken = time - event.delay; return; }
    turn.mark('noticed', time);
    this.#markSpoken(turn, time);
  }

  // Without a detector in the bot's graph: the last that was heard of a person here.
  #markSpoken(turn, time) {
    if (turn.marks.spoken !== undefined) return;
    const last = this.#room.voiceBefore(time);
    if (time - last < NOTICED_MS) turn.marks.spoken = last;
  }

  #markAudio(time) {
    const turn = this.#turn;
    if (!turn || turn.isOver || turn.start === null) return;
    turn.marks.audio = Math.min(turn.marks.audio ?? time, time);
    this.#answered = turn;
    this.hear();
  }

  // Whether the answer is heard by now: the bot's voice has begun since the user's ended.
  hear() {
    const turn = this.#turn;
    if (!turn || turn.isOver || turn.marks.heard !== undefined || !turn.isAnswering) return false;
    const { onset } = this.#person.voice;
    if (onset > turn.start) turn.mark('heard', onset);
    return turn.marks.heard !== undefined;
  }

  #measured(event) {
    if (typeof event.name !== 'string' || !isPossible(event.ms)) return;
    const name = plainName(event.name.slice(0, 32));
    this.times.delete(name);
    this.times.set(name, Math.max(0, event.ms));
    if (this.times.size > KEPT_TIMES) this.times.delete(this.times.keys().next().value);
  }

  // MARK: Lines

  #transcript(event, time) {
    const text = textOf(event.text);
    if (event.final === true && text) {
      const turn = this.#openTurn();
      turn.marks.final = time;
      this.#markSpoken(turn, time);
    }
    if (!text && !this.#said) return;
    this.#said ??= this.#room.log.add(this.#room.speaker(), '', 'partial');
    this.#room.log.set(this.#said, text);
    if (event.final !== true) return;
    this.#said.row.classList.remove('partial');
    if (text) announce(text); else this.#said.row.remove();
    this.#said = null;
  }

  #replyText(event, time) {
    const text = textOf(event.text);
    if (text && this.#turn && !this.#turn.isOver && this.#turn.start !== null) {
      this.#turn.mark('token', time);
      this.#answered = this.#turn;
    }
    const reply = this.#replyFor(event, text);
    if (!reply) return;
    reply.text = cut(event.mode === 'append' ? reply.text + text : text, KEPT_CHARACTERS);
    this.#room.log.set(reply.line, reply.text);
    if (event.final !== true) return;
    reply.isFinal = true;
    reply.line.row.classList.remove('partial');
    if (reply.text) announce(`${this.#person.name}: ${reply.text}`);
  }

  // The line a text belongs to: that of its round, or else a new one behind a final text.
  #replyFor(event, text) {
    const known = this.#reply;
    const round = typeof event.round === 'string' ? event.round : null;
    const isSame = known && !known.isDone && (round !== null && known.round !== null ? round === known.round : !known.isFinal);
    if (isSame) return known;
    if (!text) return null;
    const line = this.#room.log.add(this.#person.name, '', 'bot partial');
    this.#reply = { line, round, text: '', isFinal: false, isDone: false };
    return this.#reply;
  }

  // Several nodes tell of one interruption; how much was heard comes last.
  #cut(event) {
    const reply = this.#reply;
    const isOther = typeof event.round === 'string' && reply && reply.round !== null && event.round !== reply.round;
    if (isOther) return;
    if (this.#answered) this.#answered.isCut = this.#answered.isOver = true;
    if (!reply) return;
    reply.isDone = true;
    reply.line.row.classList.remove('partial');
    reply.line.row.classList.add('cut');
    if (isPossible(event.ms) && event.samples !== undefined) reply.heard = event.ms;
    this.#room.log.mark(reply.line, reply.heard === undefined ? 'interrupted' : `interrupted after ${seconds(reply.heard)}`);
  }

  // Only a node that plays counts samples; a service may speak of an answer that has not begun.
  #mute(event) { if (event.samples > 0) this.#room.mute(this.#person); }
}

// The event in a message: JSON with an "event"; null: there is none.
function eventIn(text) {
  try {
    const value = JSON.parse(text);
    return isObject(value) && typeof value.event === 'string' ? value : null;
  } catch {
    return null;
  }
}

// MARK: People

class Person {
  voice = new Voice();
  told = -127;
  dialogue = null;
  hasSound = false;
  #parts = { row: make('li'), name: make('span', 'name'), is: make('span', 'is'), meter: make('span', 'meter'), bar: make('i') };

  constructor(member, isSelf) {
    this.isSelf = isSelf;
    this.take(member);
    this.#parts.meter.setAttribute('aria-hidden', 'true');
    this.#parts.meter.append(this.#parts.bar);
    this.#parts.row.append(this.#parts.name, this.#parts.is, this.#parts.meter);
  }

  get row() { return this.#parts.row; }

  take(member) {
    this.peer = textOf(member.peer);
    this.user = textOf(member.user);
    this.name = plainName(textOf(member.name) || this.user);
    this.role = member.role === 'viewer' ? 'viewer' : 'host';
    this.tracks = new Set(Array.isArray(member.tracks) ? member.tracks : []);
    this.isMuted = member.muted === true;
  }

  get isSilent() { return this.isMuted || !this.tracks.has('audio'); }
  get isSpeaking() { return this.hasSound ? now() - this.voice.last < PAUSE_MS : this.told > -50; }

  get words() {
    if (this.role === 'viewer') return 'listens';
    if (this.isSilent) return this.dialogue ? 'bot' : 'muted';
    if (this.dialogue) return this.isSpeaking ? 'bot, speaking' : 'bot';
    return this.isSpeaking ? 'speaking' : '';
  }

  draw() {
    const { name, is, bar } = this.#parts;
    setText(name, this.isSelf ? `${this.name} (you)` : this.name);
    setText(is, this.words);
    is.classList.toggle('muted', this.words === 'muted');
    const level = this.hasSound ? meterOf(this.voice.level) : Math.max(0, 1 + this.told / 60);
    bar.style.transform = `scaleX(${(this.isSilent ? 0 : level).toFixed(2)})`;
  }

  get copy() {
    return {
      peer: this.peer, user: this.user, name: this.name, role: this.role, tracks: [...this.tracks], muted: this.isSilent,
      isBot: this.dialogue !== null, state: this.dialogue?.state ?? null, level: this.voice.level, speaking: this.isSpeaking,
    };
  }
}

// A tile for each peer that is seen, and one for oneself.
class Tiles {
  #tiles = new Map();

  show(key, name, track, isMirrored = false) {
    const known = this.#tiles.get(key);
    if (known?.track === track) return setText(known.caption, name);
    this.hide(key);
    const tile = { track, figure: make('figure'), caption: make('figcaption', '', name), video: make('video', isMirrored ? 'mirrored' : '') };
    Object.assign(tile.video, { muted: true, autoplay: true, playsInline: true, srcObject: new MediaStream([track]) });
    tile.figure.append(tile.video, tile.caption);
    byID('tiles').append(tile.figure);
    this.#tiles.set(key, tile);
    tile.video.play().catch(() => {});
  }

  hide(key) {
    const tile = this.#tiles.get(key);
    if (!tile) return;
    this.#tiles.delete(key);
    tile.video.srcObject = null;
    tile.figure.remove();
  }

  clear() { for (const key of [...this.#tiles.keys()]) this.hide(key); }
}

// MARK: Room

// A stay in a room, over as many connections as it takes.
class Room {
  state = 'idle';
  // Why it is not in the room, in words.
  reason = '';
  log = new Log();
  waterfall = new Waterfall();
  sound = new Sound();
  devices = new Devices();
  people = new Map();
  slots = new Map();
  me = null;
  isMuted = false;
  isPushToTalk = false;
  isTalking = false;
  joinedMs = null;
  firstSoundMs = null;
  events = [];
  #tiles = new Tiles();
  #wire = null;
  #media = null;
  #receivers = new Map();
  #settings = null;
  #mode = null;
  #rights = new Set();
  #begunAt = 0;
  // Which press of "Join" this is: what waits from an earlier one ends.
  #round = 0;
  #isOver = true;
  #timer = null;
  #bots = new Map();
  onChange = () => {};
  onEnd = () => {};

  constructor() {
    this.sound.onBlocked = () => { byID('unblock').hidden = false; };
    this.devices.onEnded = (what) => this.#deviceEnded(what);
  }

  get hasMedia() { return this.#media !== null; }
  get canSend() { return this.me?.role !== 'viewer' && this.#rights.has('publish') && this.hasMedia; }
  get canShareFiles() { return this.state === 'joined' && this.me?.role !== 'viewer' && this.#rights.has('publish'); }
  get hasVideo() { return this.#media?.hasVideo === true; }
  get mediaState() { return this.#media?.state ?? null; }
  get stats() { return this.#media?.stats() ?? Promise.resolve([]); }
  get bots() { return [...this.people.values()].filter((person) => person.dialogue); }

  note(event, detail = {}) {
    this.events.push({ at: now(), event, ...detail });
    if (this.events.length > KEPT_EVENTS) this.events.shift();
  }

  #set(state) {
    if (this.state === state) return;
    this.state = state;
    this.note('state', { state });
    this.onChange();
  }

  // MARK: Connecting

  // settings: user, name, room, role, token, mic, camera.
  async join(settings) {
    this.#settings = settings;
    this.#isOver = false;
    this.#begunAt = now();
    const round = ++this.#round;
    this.joinedMs = this.firstSoundMs = null;
    this.reason = '';
    this.log.clear();
    this.waterfall.clear();
    this.#set('joining');
    this.sound.open();
    if (settings.mic) this.openMic();
    if (settings.camera) this.showCamera();
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    for (let pause = FIRST_PAUSE_MS; !this.#isOver && round === this.#round;) {
      const result = await this.#stay();
      if (this.#isOver) return;
      if (this.#isFinal(result.error)) return this.#end(result.error.words);
      if (result.hasJoined) pause = FIRST_PAUSE_MS;
      this.#set(this.joinedMs === null ? 'joining' : 'reconnecting');
      this.reason = this.#reason(result.error);
      this.onChange();
      // A hub that restarts is not asked by all its members at the same moment.
      await sleep(Math.max(result.error?.afterMs ?? 0, pause * (0.8 + Math.random() * 0.4)));
      pause = Math.min(pause * 2, MOST_PAUSE_MS);
    }
  }

  // A hub that keeps the first takes whoever comes back for a second, until it misses the first.
  #isFinal(error) { return error?.isFinal === true && !(error.name === 'duplicate' && this.joinedMs !== null); }

  #reason(error) {
    if (error && error.name !== 'lost') return error.words;
    return this.joinedMs === null ? 'The hub does not answer. Is it running, and does it let this page in?' : 'The connection is lost.';
  }

  async #stay() {
    let hasJoined = false;
    try {
      this.#wire = new Wire(hubAddress());
      this.#wire.onPush = (event, payload) => this.#push(event, payload);
      await this.#wire.opened;
      const joined = await this.#enter();
      if (this.#isOver) return { hasJoined };
      hasJoined = true;
      this.#begin(joined);
      await this.#wire.closed;
      return { hasJoined, error: lost() };
    } catch (error) {
      return { hasJoined, error: error instanceof HubError ? error : new HubError('unknownOp', error.message) };
    } finally {
      this.#release();
    }
  }

  #logIn(patience) {
    const { user, name, token } = this.#settings;
    return this.#wire.request('login', { version: VERSION, user, name, token: token ?? undefined }, patience);
  }

  // Both requests at once: the hub takes them in order.
  async #enter() {
    const { room, role } = this.#settings;
    const login = this.#logIn();
    const join = this.#wire.request('join', { room, role });
    join.catch(() => {});
    await login;
    return join;
  }

  // Restores everything: the hub knows nothing of an earlier connection.
  #begin(joined) {
    this.me = new Person({ peer: joined.peer, user: this.#settings.user, name: this.#settings.name, role: joined.role }, true);
    this.me.hasSound = true;
    this.#rights = new Set(Array.isArray(joined.rights) ? joined.rights : []);
    byID('people').replaceChildren(this.me.row);
    for (const member of listOf(joined.peers)) this.#add(member);
    this.joinedMs ??= now() - this.#begunAt;
    this.reason = '';
    this.#mode = typeof joined.media === 'string' ? joined.media : null;
    if (this.#mode) this.#beginMedia(joined);
    else this.log.note(HUB_WORDS.noMedia);
    this.#closeUnused();
    this.#set('joined');
    announce(`You are in the room ${this.#settings.room}`);
    this.onChange();
  }

  // What the room does not take is not recorded either: there would be no button to end it.
  #closeUnused() {
    if (!this.canSend) {
      this.devices.close();
      this.sound.remove('mic');
    } else if (!this.hasVideo) {
      this.devices.closePicture();
    }
    this.#drawTiles();
  }

  #beginMedia(joined) {
    if (!window.RTCPeerConnection) return this.log.note(`This browser has no WebRTC, so there is no sound. ${UPDATE}`);
    const servers = listOf(joined.servers).map(({ url, user, password }) => ({ urls: url, username: user, credential: password }));
    const wire = this.#wire;
    let media;
    try {
      media = this.#media = new Media(this.#mode, servers, (op, payload) => wire.request(op, payload));
    } catch (error) {
      return showAlert(`Sound and pictures cannot be prepared: ${error.message}. ${UPDATE}`);
    }
    media.onReceivers = (receivers) => this.#receive(receivers);
    media.onState = (state) => { this.note('media', { state }); this.onChange(); };
    media.onProblem = (text) => showAlert(text);
    media.onLost = () => wire.close();
    media.start();
    this.#ask('subscribe', { track: 'audio', on: true, all: true });
    if (media.hasVideo) this.#ask('subscribe', { track: 'video', on: true, all: true });
    this.#sendMic();
    this.#sendPicture();
  }

  #ask(op, payload) {
    this.#wire?.request(op, payload).catch((error) => { if (error.name !== 'lost') showAlert(error.words); });
  }

  #release() {
    this.#wire?.close();
    this.#media?.close();
    this.#wire = this.#media = null;
    this.#receivers = new Map();
    this.slots.clear();
    for (const person of this.people.values()) person.row.remove();
    this.people.clear();
    this.sound.clear();
    this.#tiles.clear();
    this.#drawBots();
  }

  // The network has changed: ICE finds other ways, and a dead connection shows by the missing answer.
  networkChanged() {
    if (this.state !== 'joined') return;
    this.note('network');
    this.#media?.restart();
    this.#logIn(PROBE_MS).catch(() => {});
  }

  leave() {
    if (this.#isOver) return;
    this.#wire?.request('leave').catch(() => {});
    this.#end('');
  }

  #end(text) {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#release();
    this.devices.close();
    this.sound.close();
    this.me = null;
    this.#set('left');
    this.onEnd(text);
  }

  // MARK: Pushes

  #push(event, payload) {
    this.note(event, event === 'speaking' ? {} : { payload: shortened(payload) });
    switch (event) {
      case 'peer': this.#peer(payload); break;
      case 'slot': this.#slot(payload); break;
      case 'speaking': this.#speaking(listOf(payload.peers)); break;
      case 'data': this.#data(payload); break;
      case 'message': this.#message(payload); break;
      case 'file': this.#file(payload); break;
      case 'authWillExpire': this.#expires(payload); break;
      case 'kicked': this.#kicked(payload); break;
      default: break;
    }
  }

  #add(member) {
    const person = new Person(member, false);
    if (!person.peer) return null;
    this.people.get(person.peer)?.row.remove();
    this.people.set(person.peer, person);
    byID('people').append(person.row);
    return person;
  }

  #peer(payload) {
    const peer = textOf(payload.peer);
    if (payload.change === 'left') return this.#peerLeft(peer, payload.reason);
    const known = this.people.get(peer);
    if (known) known.take(payload);
    else if (this.#add(payload)) announce(`${this.people.get(peer).name} has joined`);
    this.#drawTiles();
    this.onChange();
  }

  #peerLeft(peer, reason) {
    const person = this.people.get(peer);
    if (!person) return;
    this.people.delete(peer);
    person.row.remove();
    for (const slot of this.slots.values()) if (slot.peer === peer) slot.peer = null;
    const text = reason === 'kicked' ? ' was removed' : reason === 'dropped' ? ' has lost the connection' : ' has left';
    this.log.note(text, person.name);
    announce(person.name + text);
    this.#drawTiles();
    this.#drawBots();
    this.onChange();
  }

  #slot({ mid, track, peer }) {
    if (typeof mid !== 'string') return;
    this.slots.set(mid, { mid, track: textOf(track), peer: typeof peer === 'string' ? peer : null });
    this.sound.unmute(mid);
    this.#drawTiles();
  }

  #speaking(levels) {
    for (const person of this.people.values()) person.told = -127;
    for (const { peer, level } of levels) {
      const person = this.people.get(peer);
      if (!person || !Number.isFinite(level)) continue;
      person.told = level;
      if (!person.hasSound) person.voice.last = now();
    }
  }

  #data({ from, label, text }) {
    const person = this.people.get(from);
    if (!person || label !== BOT_LABEL || typeof text !== 'string') return;
    const arrival = now();
    const event = eventIn(text);
    if (!event) return;
    if (!person.dialogue) {
      person.dialogue = new Dialogue(this, person);
      this.note('bot', { peer: person.peer });
    }
    person.dialogue.take(event, arrival);
    this.waterfall.draw(arrival, true);
    this.#drawBots();
  }

  #message({ from, text }) {
    const name = this.people.get(from)?.name ?? 'Somebody';
    this.log.add(name, textOf(text));
    announce(`${name} writes: ${textOf(text)}`);
  }

  #file({ from, id, name, bytes }) {
    if (typeof id !== 'string' || !NAME.test(id) || !textOf(name)) return;
    const who = this.people.get(from)?.name ?? 'Somebody';
    const shown = plainFileName(name);
    this.log.link(this.log.add(who, ''), `files/${id}`, shown, sizeOf(Number.isFinite(bytes) ? bytes : 0));
    announce(`${who} shares the file ${shown}`);
  }

  #expires({ inMs }) {
    const rest = Number.isFinite(inMs) ? ` in ${Math.max(1, Math.round(inMs / 1000))} s` : ' soon';
    this.log.note(`Your link expires${rest}; then you are out of the room. ${ASK}`);
  }

  // Nobody comes back by itself: whoever was replaced would replace the other.
  #kicked({ reason, text }) {
    const more = textOf(text) ? ` ${textOf(text)}` : '';
    this.#end((KICK_WORDS[reason] ?? 'You are out of the room.') + more);
  }

  // MARK: What is received

  #receive(receivers) {
    this.#receivers = receivers;
    for (const [mid, receiver] of receivers) if (receiver.track.kind === 'audio') this.sound.add(mid, receiver);
    this.#drawTiles();
  }

  #drawTiles() {
    const shown = new Set();
    for (const { mid, track, peer } of this.slots.values()) {
      const person = this.people.get(peer);
      const receiver = this.#receivers.get(mid);
      if (track !== 'video' || !person || !receiver || !person.tracks.has('video')) continue;
      shown.add(mid);
      this.#tiles.show(mid, person.name, receiver.track);
    }
    for (const mid of this.slots.keys()) if (!shown.has(mid)) this.#tiles.hide(mid);
    const { camera, source } = this.devices;
    if (camera && this.me) this.#tiles.show('me', source === 'screen' ? 'Your screen' : 'You', camera, source === 'camera');
    else this.#tiles.hide('me');
  }

  // Measures and draws the levels. In a mix one sound is everybody's: who it is the hub tells.
  #tick() {
    if (!this.me) return;
    const time = now();
    this.#measure(time);
    for (const person of [this.me, ...this.people.values()]) person.draw();
    const isHeard = this.bots.filter((person) => person.dialogue.hear()).length > 0;
    this.waterfall.draw(time, isHeard);
  }

  #measure(time) {
    const own = this.sound.measure('mic', time);
    this.me.voice.take(this.isOnAir ? own.peak : 0, own.at, time);
    for (const person of this.people.values()) person.hasSound = false;
    for (const [mid, receiver] of this.#receivers) {
      if (receiver.track.kind !== 'audio') continue;
      const { peak, at } = this.sound.measure(mid, time);
      if (peak >= SILENCE) this.#noteFirstSound(at);
      for (const person of this.#heardBy(mid)) {
        person.hasSound = this.#mode === 'forward';
        person.voice.take(peak, at, time);
      }
    }
  }

  // A mix carries the others as well, and is never muted.
  #audioOf(person) {
    if (this.#mode !== 'forward') return [];
    return [...this.slots.values()].filter(({ track, peer }) => track === 'audio' && peer === person.peer).map(({ mid }) => mid);
  }

  mute(person) { for (const mid of this.#audioOf(person)) this.sound.mute(mid); }
  unmute(person) { for (const mid of this.#audioOf(person)) this.sound.unmute(mid); }

  // Whose sound a medium carries. In a mix: a bot's, as far as turns go.
  #heardBy(mid) {
    if (this.#mode === 'mix') return this.bots;
    const person = this.people.get(this.slots.get(mid)?.peer);
    return person ? [person] : [];
  }

  #noteFirstSound(at) {
    if (this.firstSoundMs !== null) return;
    this.firstSoundMs = at - this.#begunAt;
    this.note('firstSound', { ms: this.firstSoundMs });
  }

  // Who may be spoken with: all that publish, but bots.
  get #persons() { return [this.me, ...this.people.values()].filter((person) => person && !person.dialogue && person.role === 'host'); }

  // When a person was last heard before a time: for the end of speech, as it was.
  voiceBefore(time) {
    const times = this.#persons.map(({ voice }) => voice.last).filter((last) => last <= time);
    return Math.max(-Infinity, ...times);
  }

  speaker() {
    const [last] = this.#persons.sort((a, b) => b.voice.last - a.voice.last || a.isSelf - b.isSelf);
    return !last || last === this.me ? 'You' : last.name;
  }

  // MARK: What is sent

  get isOnAir() {
    if (!this.devices.mic || !this.me || !this.canSend) return false;
    return this.isPushToTalk ? this.isTalking : !this.isMuted;
  }

  // Whoever pushes to talk is only silent between.
  get #isPublishing() { return this.devices.mic !== null && this.canSend && (this.isPushToTalk || !this.isMuted); }

  async openMic() {
    try {
      const track = await this.devices.openMic();
      if (this.#isOver) return this.devices.close();
      this.sound.listen('mic', track);
      if (this.state === 'joined') this.#closeUnused();
      this.sendMicNow();
      refreshDevices();
    } catch (error) {
      const text = deviceWords('microphone', error);
      this.note('noMicrophone', { name: error.name });
      showAlert(`${text} Until then you listen only.`);
      this.onChange();
    }
  }

  sendMicNow() {
    this.#gate();
    this.#sendMic();
    this.onChange();
  }

  #gate() { if (this.devices.mic) this.devices.mic.enabled = this.isPushToTalk ? this.isTalking : !this.isMuted; }

  #sendMic() {
    if (!this.#media || !this.canSend) return;
    this.#gate();
    this.#media.send('audio', this.devices.mic);
    this.#publish('audio', this.#isPublishing);
  }

  #publish(track, on, source) {
    if (on === this.me.tracks.has(track) && !source) return;
    if (on) this.me.tracks.add(track); else this.me.tracks.delete(track);
    this.#ask('publish', { track, on, source });
  }

  setMuted(isMuted) {
    this.isMuted = isMuted;
    this.sendMicNow();
  }

  setPushToTalk(isOn) {
    this.isPushToTalk = isOn;
    this.isTalking = false;
    this.sendMicNow();
  }

  // Only the gate: a press must not wait for the hub.
  setTalking(isTalking) {
    if (!this.isPushToTalk || this.isTalking === isTalking) return;
    this.isTalking = isTalking;
    this.#gate();
    this.onChange();
  }

  showCamera() { return this.#showPicture('camera', () => this.devices.openCamera()); }
  showScreen() { return this.#showPicture('screen', () => this.devices.openScreen()); }

  async #showPicture(what, open) {
    try {
      await open();
      if (this.#isOver) return this.devices.close();
      if (this.state === 'joined') this.#closeUnused();
      this.#sendPicture();
      refreshDevices();
    } catch (error) {
      // Whoever closes the choice of a screen has decided, and needs no words.
      if (what === 'camera' || error.name !== 'NotAllowedError') showAlert(deviceWords(what, error));
    }
    this.onChange();
  }

  hidePicture() {
    this.devices.closePicture();
    this.#sendPicture();
    this.onChange();
  }

  #sendPicture() {
    this.#drawTiles();
    if (!this.hasVideo || !this.canSend) return;
    const { camera, source } = this.devices;
    this.#media.send('video', camera);
    this.#publish('video', camera !== null, source ?? undefined);
  }

  #deviceEnded(what) {
    if (what === 'picture') return this.hidePicture();
    this.devices.closeMic();
    this.devices.micID = '';
    this.sound.remove('mic');
    this.sendMicNow();
    this.log.note('The microphone was disconnected; another one is tried.');
    this.openMic();
  }

  // MARK: Words

  async write(text, bot) {
    const line = this.log.add('You', text);
    try {
      if (!this.#wire) throw lost();
      if (bot) await this.#wire.request('control', { to: bot, command: { command: 'ask', text } });
      else await this.#wire.request('message', { text });
    } catch (error) {
      line.row.classList.add('failed');
      this.log.mark(line, error.name === 'lost' ? 'not sent: no connection' : `not sent: ${error.words ?? error.message}`);
    }
  }

  async shareFile(file) {
    const name = plainFileName(cut(file.name || 'file', FILE_NAME));
    const line = this.log.add('You', name);
    this.log.mark(line, 'sending …');
    try {
      const id = await this.#send(file, name);
      this.log.unmark(line);
      this.log.link(line, `files/${id}`, name, sizeOf(file.size));
    } catch (error) {
      line.row.classList.add('failed');
      this.log.mark(line, `not sent: ${fileWords(error)}`);
    }
  }

  // The hub gives a ticket by the wire, and takes the content over HTTP.
  async #send(file, name) {
    if (file.size > FILE_BYTES) throw new HubError('tooLarge', `it is larger than ${sizeOf(FILE_BYTES)}`);
    if (!this.#wire) throw lost();
    const type = file.type && file.type.length <= FILE_TYPE ? file.type : undefined;
    const { id, ticket } = await this.#wire.request('file', { name, bytes: file.size, type });
    const response = await fetch(`files?name=${encodeURIComponent(name)}`, {
      method: 'POST', body: file, headers: { Authorization: `Bearer ${textOf(ticket)}` }, cache: 'no-store',
    });
    if (response.status !== 201) throw new HubError('file', (await response.text()).trim());
    return textOf(id);
  }

  interrupt(peer) {
    if (!peer || !this.#wire) return;
    this.note('interrupt', { peer });
    this.#ask('control', { to: peer, command: { command: 'interrupt' } });
  }

  // MARK: Bots and figures

  #drawBots() {
    const bots = this.bots;
    byID('bots').hidden = bots.length === 0;
    for (const [peer, line] of this.#bots) if (!this.people.get(peer)?.dialogue) { line.box.remove(); this.#bots.delete(peer); }
    for (const person of bots) this.#drawBot(person);
    const times = bots.flatMap((person) => [...person.dialogue.times]).map(([name, ms]) => `${name} ${seconds(ms)}`);
    setText(byID('measured'), times.join(' · '));
    this.waterfall.expect(bots.length > 0);
    fillTargets(bots);
  }

  #drawBot(person) {
    const line = this.#bots.get(person.peer) ?? this.#newBot(person);
    setText(line.name, person.name);
    setText(line.state, STATE_WORDS[person.dialogue.state] ?? person.dialogue.state);
  }

  #newBot(person) {
    const line = { box: make('div', 'bot-line'), name: make('h2', 'name'), state: make('span', 'state'), button: make('button') };
    const words = make('div');
    words.append(line.name, line.state);
    line.button.type = 'button';
    line.button.setAttribute('aria-label', `Interrupt ${person.name}`);
    setKey(line.button, 'Interrupt', 'I');
    line.button.onclick = () => this.interrupt(person.peer);
    line.box.append(words, line.button);
    byID('bot-lines').append(line.box);
    this.#bots.set(person.peer, line);
    return line;
  }
}

// Why a file was not sent. A hub's own words say more than those for everything else.
function fileWords(error) {
  switch (error.name) {
    case 'lost': return 'no connection';
    case 'forbidden': case 'unknownOp': return 'this hub does not let you share files';
    case 'TypeError': return 'the connection broke, or the file has changed';
    default: return error.message || error.name;
  }
}

// MARK: The page

const room = new Room();
const address = readAddress();
let escapedAt = -Infinity;

function showAlert(text) {
  setText(byID('alert-text'), text);
  byID('alert').hidden = text === '';
}

function statusText() {
  switch (room.state) {
    case 'joining': return room.reason || 'Joining …';
    case 'reconnecting': return `${room.reason} Joining again …`;
    case 'joined': return room.hasMedia ? mediaText(room.mediaState) : 'Messages only';
    default: return '';
  }
}

function mediaText(state) {
  switch (state) {
    case 'connected': return 'Connected';
    case 'disconnected': case 'failed': return 'The sound is interrupted; looking for another way …';
    default: return 'Connecting the sound …';
  }
}

function drawPage() {
  const isIn = ['joining', 'joined', 'reconnecting'].includes(room.state);
  byID('entry').hidden = isIn;
  byID('stage').hidden = byID('controls').hidden = !isIn;
  document.body.classList.toggle('in-room', isIn);
  setText(byID('status'), statusText());
  drawControls();
}

function drawControls() {
  const { canSend, isMuted, isPushToTalk, isTalking } = room;
  const { source, canShare, canCapture } = room.devices;
  const hasMic = room.devices.mic !== null;
  const canShow = canSend && room.hasVideo;
  drawButton('mute', !isPushToTalk || !hasMic, !hasMic ? 'Turn on the microphone' : isMuted ? 'Unmute' : 'Mute', 'M', isMuted && hasMic && 'off');
  drawButton('hold', isPushToTalk && hasMic, 'Hold to talk', 'Space', isTalking && 'on');
  drawButton('camera', canShow, source === 'camera' ? 'Camera off' : 'Camera on', 'V', source === 'camera' && 'on');
  drawButton('screen', canShow && canShare, source === 'screen' ? 'Stop sharing' : 'Share the screen', 'S', source === 'screen' && 'on');
  byID('share').hidden = !room.canShareFiles;
  byID('mute').disabled = byID('hold').disabled = byID('ptt').disabled = !canSend;
  byID('device-box').hidden = !(canSend && canCapture);
  setText(byID('title'), byID('stage').hidden ? 'Millrace room' : byID('room').value);
}

function drawButton(id, isShown, text, key, look) {
  const button = byID(id);
  button.hidden = !isShown;
  button.className = look || '';
  setKey(button, text, key);
}

// Whom the line is for: everybody, or a bot, which is asked.
function fillTargets(bots) {
  const select = byID('to');
  const wanted = ['', ...bots.map((person) => person.peer)];
  select.hidden = bots.length === 0;
  if (wanted.join() === [...select.options].map((entry) => entry.value).join()) return;
  const chosen = select.value;
  select.replaceChildren(option('', 'To everybody'), ...bots.map((person) => option(person.peer, `Ask ${person.name}`)));
  select.value = wanted.includes(chosen) ? chosen : '';
}

const USUAL_MIC = ['', 'The usual microphone'];
const USUAL_CAMERA = ['', 'The usual camera'];

// Before the first permission browsers name no devices.
function fillDevices(id, devices, kind, first, chosen) {
  const select = byID(id);
  const entries = devices.filter((device) => device.kind === kind && device.deviceId)
    .map((device, index) => [device.deviceId, device.label || `Device ${index + 1}`]);
  select.replaceChildren(...[...first, ...entries].map(([value, text]) => option(value, text)));
  select.value = chosen;
  if (select.selectedIndex < 0) select.selectedIndex = 0;
}

async function refreshDevices() {
  const devices = await room.devices.list();
  const isNew = byID('mic').options.length === 0;
  const [mic, camera] = isNew ? [address.mic ? '' : 'none', address.camera ? '' : 'none'] : [byID('mic').value, byID('cam').value];
  fillDevices('mic', devices, 'audioinput', [USUAL_MIC, ['none', 'None, listen only']], mic);
  fillDevices('cam', devices, 'videoinput', [['none', 'Off'], USUAL_CAMERA], camera);
  fillDevices('mic-now', devices, 'audioinput', [USUAL_MIC], room.devices.micID);
  fillDevices('cam-now', devices, 'videoinput', [USUAL_CAMERA], room.devices.cameraID);
}

function readForm() {
  const name = Array.from(byID('name').value.trim()).slice(0, 64).join('');
  const wanted = byID('room').value.trim() || 'lobby';
  if (!NAME.test(wanted)) return { problem: 'The name of a room has 1 to 64 letters a to z, digits, "-" and "_". Choose such a name.' };
  const claimed = address.token === null ? {} : claims(address.token);
  const user = NAME.test(textOf(claimed.user)) ? claimed.user : address.user;
  return {
    user, name: name || 'Guest', room: wanted, token: address.token, role: new FormData(byID('join-form')).get('role'),
    mic: byID('mic').value !== 'none', camera: byID('cam').value !== 'none',
  };
}

function submit() {
  if (!['idle', 'left'].includes(room.state)) return;
  const settings = readForm();
  showAlert(settings.problem ?? '');
  if (settings.problem) return byID('room').focus();
  byID('room').value = settings.room;
  if (settings.role === 'viewer') settings.mic = settings.camera = false;
  room.devices.micID = settings.mic ? byID('mic').value : '';
  room.devices.cameraID = settings.camera ? byID('cam').value : '';
  room.join(settings);
  // Not the line: the keys of the buttons shall work at once.
  byID('title').focus({ preventScroll: true });
}

function pressMute() {
  if (!room.canSend) return;
  if (!room.devices.mic) room.openMic();
  else if (!room.isPushToTalk) room.setMuted(!room.isMuted);
}

function pressCamera() {
  if (!room.hasVideo || !room.canSend) return;
  if (room.devices.source === 'camera') room.hidePicture(); else room.showCamera();
}

function pressScreen() {
  if (!room.hasVideo || !room.canSend || !room.devices.canShare) return;
  if (room.devices.source === 'screen') room.hidePicture(); else room.showScreen();
}

function pressInterrupt() { room.interrupt(room.bots[0]?.peer); }

// MARK: Keys

const isTextField = (element) => element instanceof HTMLElement && element.matches('select, textarea, input:not([type="checkbox"], [type="radio"])');
const KEYS = { m: pressMute, v: pressCamera, s: pressScreen, i: pressInterrupt };

function keyDown(event) {
  if (byID('stage').hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape') return pressEscape(event);
  if (isTextField(event.target)) return;
  if (event.code === 'Space') return pressSpace(event);
  const action = KEYS[event.key.toLowerCase()];
  if (!action || event.repeat) return;
  event.preventDefault();
  action();
}

function pressEscape(event) {
  if (event.repeat) return;
  if (event.target instanceof HTMLElement) event.target.blur();
  if (now() - escapedAt < ESCAPE_MS) { escapedAt = -Infinity; return room.leave(); }
  escapedAt = now();
  announce('Press Escape again to leave');
}

// Space talks, except on another control that was reached by the keyboard.
function pressSpace(event) {
  if (!room.isPushToTalk) return;
  const isOther = event.target !== byID('hold') && event.target instanceof HTMLElement
    && event.target.matches('button:focus-visible, input:focus-visible, summary:focus-visible, a:focus-visible');
  if (isOther) return;
  event.preventDefault();
  if (!event.repeat) room.setTalking(true);
}

function keyUp(event) {
  if (event.code !== 'Space' || !room.isTalking) return;
  event.preventDefault();
  room.setTalking(false);
}

// MARK: Beginning

function wireForm() {
  on(byID('join-form'), 'submit', (event) => { event.preventDefault(); submit(); });
  on(byID('write'), 'submit', (event) => {
    event.preventDefault();
    const text = byID('line').value.trim();
    if (text) room.write(text, byID('to').value);
    byID('line').value = '';
  });
  on(byID('share'), 'click', () => byID('file').click());
  on(byID('file'), 'change', (event) => {
    for (const file of event.target.files) room.shareFile(file);
    // So that the same file can be chosen again.
    event.target.value = '';
  });
  on(byID('alert-close'), 'click', () => showAlert(''));
  on(byID('unblock'), 'click', () => { byID('unblock').hidden = true; room.sound.unblock(); });
}

function wireControls() {
  on(byID('mute'), 'click', pressMute);
  on(byID('camera'), 'click', pressCamera);
  on(byID('screen'), 'click', pressScreen);
  on(byID('leave'), 'click', () => room.leave());
  on(byID('ptt'), 'change', (event) => room.setPushToTalk(event.target.checked));
  const hold = byID('hold');
  on(hold, 'pointerdown', (event) => { hold.setPointerCapture(event.pointerId); room.setTalking(true); });
  for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) on(hold, end, () => room.setTalking(false));
  on(hold, 'contextmenu', (event) => event.preventDefault());
  on(byID('mic-now'), 'change', (event) => { room.devices.micID = event.target.value; room.openMic(); });
  on(byID('cam-now'), 'change', (event) => {
    room.devices.cameraID = event.target.value;
    if (room.devices.source === 'camera') room.showCamera();
  });
}

function wireWindow() {
  // Where a page joins by itself browsers allow sound from the first press on.
  on(document, 'pointerdown', () => { if (room.me) room.sound.open(); });
  on(document, 'keydown', keyDown);
  on(document, 'keyup', keyUp);
  // A key that is released elsewhere must not leave the microphone open.
  on(window, 'blur', () => room.setTalking(false));
  on(document, 'visibilitychange', () => { if (document.hidden) room.setTalking(false); });
  on(window, 'online', () => room.networkChanged());
  watchNetwork(navigator.connection);
  navigator.mediaDevices?.addEventListener?.('devicechange', refreshDevices);
  on(window, 'pagehide', () => room.leave());
}

// Only another network counts: the event also comes whenever an estimate of the speed changes. Not every browser says the type.
function watchNetwork(connection) {
  let known = connection?.type;
  connection?.addEventListener?.('change', () => {
    if (connection.type === known) return;
    known = connection.type;
    room.networkChanged();
  });
}

function fillForm() {
  const claimed = address.token === null ? {} : claims(address.token);
  address.user = randomUser();
  byID('room').value = address.room ?? (textOf(claimed.room) || 'lobby');
  byID('name').value = address.name ?? '';
  const role = claimed.role === 'viewer' ? 'viewer' : address.role;
  if (role === 'viewer') document.querySelector('input[value="viewer"]').checked = true;
  const isOpen = room.devices.canCapture;
  setText(byID('hint'), isOpen ? 'The browser asks for the microphone when you join. You can join without one.' : deviceWords('microphone', { name: 'InsecureError' }));
}

// What tests may see: copies, nothing that could be changed.
function expose() {
  const view = {
    get state() { return room.state; },
    get media() { return room.mediaState; },
    get me() { return room.me?.copy ?? null; },
    get peers() { return [...room.people.values()].map((person) => person.copy); },
    get slots() { return [...room.slots.values()].map((slot) => ({ ...slot })); },
    get turns() { return room.waterfall.copies; },
    get joinedMs() { return room.joinedMs; },
    get firstSoundMs() { return room.firstSoundMs; },
    get events() { return room.events.map((event) => ({ ...event })); },
    stats: async () => summary(await room.stats),
  };
  Object.defineProperty(window, 'millrace', { value: Object.freeze(view) });
}

async function start() {
  room.onChange = drawPage;
  room.onEnd = (text) => { showAlert(text); byID('unblock').hidden = true; byID('join').focus(); };
  fillForm();
  wireForm();
  wireControls();
  wireWindow();
  expose();
  drawPage();
  await refreshDevices();
  if (address.isAutomatic) submit(); else byID('name').focus();
}

start();

})();
