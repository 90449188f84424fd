// Runs in a page of a room before its own script. It sees the connections that the page makes, measures what they receive, and can be the
// microphone. Times are of performance.now(), levels are RMS in dB relative to full scale.
(() => {
'use strict';

// Filled in by whoever opens the page: {"isMicrophone": true, "tone": 440, "words": a WAV file in base64}; no tone, no words: null.
const settings = SETTINGS;
const RATE = 48000;
// The most an analyser keeps: 683 ms.
const WINDOW = 32768;
// 10 ms.
const BLOCK = RATE / 100;
const POLL_MS = 150;
const SILENT_DB = -120;

const connections = [];
const ears = new Map();
let context = null;
let microphone = null;
const toDB = (power) => (power > 1e-12 ? 10 * Math.log10(power) : SILENT_DB);
const contextOf = () => (context ??= new AudioContext({ sampleRate: RATE }));

window.RTCPeerConnection = class extends window.RTCPeerConnection {
  constructor(...settings) {
    super(...settings);
    connections.push(this);
  }
};

// When what plays a track was muted and unmuted, by the track's id.
const mutes = new Map();
const muted = Object.getOwnPropertyDescriptor(HTMLMediaElement.prototype, 'muted');
Object.defineProperty(HTMLMediaElement.prototype, 'muted', {
  ...muted,
  set(value) {
    muted.set.call(this, value);
    for (const { id } of this.srcObject?.getAudioTracks?.() ?? []) {
      if (!mutes.has(id)) mutes.set(id, []);
      mutes.get(id).push({ at: performance.now(), value });
    }
  },
});

// The record of a track, put together from what an analyser has kept: a level for each 10 ms. What was missed is null.
class Ear {
  levels = [];
  #analyser;
  #source;
  #next = null;
  #rest = [];
  #samples = new Float32Array(WINDOW);
  // Time of the page's clock minus that of the sound's.
  #offset = 0;
  #first = 0;

  constructor(track) {
    this.track = track;
    this.#source = contextOf().createMediaStreamSource(new MediaStream([track]));
    this.#analyser = contextOf().createAnalyser();
    this.#analyser.fftSize = WINDOW;
    this.#source.connect(this.#analyser);
  }

  poll() {
    const end = Math.round(contextOf().currentTime * RATE);
    this.#offset = performance.now() - (end * 1000) / RATE;
    this.#analyser.getFloatTimeDomainData(this.#samples);
    if (this.#next === null) this.#next = this.#first = end;
    const missed = Math.ceil(Math.max(0, end - this.#next - WINDOW) / BLOCK);
    if (missed > 0) {
      this.levels.push(...new Array(missed).fill(null));
      this.#next += missed * BLOCK;
      this.#rest = [];
    }
    const fresh = Math.max(0, end - this.#next);
    if (fresh > 0) this.#take(this.#samples.subarray(WINDOW - fresh));
    this.#next += fresh;
  }

  #take(samples) {
    for (const sample of samples) {
      this.#rest.push(sample * sample);
      if (this.#rest.length < BLOCK) continue;
      this.levels.push(toDB(this.#rest.reduce((sum, value) => sum + value, 0) / BLOCK));
      this.#rest.length = 0;
    }
  }

  // The level of each 10 ms between two times, with the time of its beginning.
  between(from, to) {
    const begun = (this.#first * 1000) / RATE + this.#offset;
    return this.levels.map((level, index) => ({ at: begun + index * 10, level })).filter(({ at }) => at >= from && at < to);
  }

  // The same, as it is played.
  played(from, to) {
    const changes = mutes.get(this.track.id) ?? [];
    const isMuted = (time) => changes.findLast(({ at }) => at <= time)?.value ?? false;
    return this.between(from, to).map(({ at, level }) => ({ at, level: level === null || !isMuted(at) ? level : SILENT_DB }));
  }

  // The level of each frequency in the last 683 ms (Goertzel's algorithm with a Hann window), and of the whole.
  tones(frequencies) {
    this.#analyser.getFloatTimeDomainData(this.#samples);
    const found = {};
    for (const frequency of frequencies) found[frequency] = this.#tone(frequency);
    found.all = toDB(this.#samples.reduce((sum, value) => sum + value * value, 0) / WINDOW);
    return found;
  }

  #tone(frequency) {
    const step = 2 * Math.cos((2 * Math.PI * frequency) / RATE);
    let one = 0;
    let two = 0;
    for (let index = 0; index < WINDOW; index++) {
      const shape = 0.5 - 0.5 * Math.cos((2 * Math.PI * index) / WINDOW);
      [one, two] = [this.#samples[index] * shape + step * one - two, one];
    }
    // The window halves the amplitude; the power of a sine is half the square of its amplitude.
    return toDB(((one * one + two * two - step * one * two) * 8) / (WINDOW * WINDOW));
  }

  close() { this.#source.disconnect(); }
}

// A microphone that makes a tone, and says what it is given.
class Microphone {
  #output;
  #oscillator = null;

  constructor() {
    this.#output = contextOf().createGain();
    if (settings.tone) this.tone(settings.tone);
    if (settings.words) this.say(settings.words);
  }

  open() {
    const end = contextOf().createMediaStreamDestination();
    this.#output.connect(end);
    return end.stream;
  }

  // A sine of -20 dBFS; none for 0.
  tone(frequency) {
    this.#oscillator?.stop();
    this.#oscillator = null;
    if (!frequency) return;
    const gain = contextOf().createGain();
    gain.gain.value = 0.1 * Math.SQRT2;
    this.#oscillator = contextOf().createOscillator();
    this.#oscillator.frequency.value = frequency;
    this.#oscillator.connect(gain).connect(this.#output);
    this.#oscillator.start();
  }

  // Plays a WAV file in base64; returns when it begins and ends.
  async say(base64) {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const source = contextOf().createBufferSource();
    source.buffer = await contextOf().decodeAudioData(bytes.buffer);
    source.connect(this.#output);
    source.start();
    const from = performance.now();
    return { from, to: from + source.buffer.duration * 1000 };
  }
}

const capture = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (wanted) => {
  const isOwn = settings.isMicrophone && wanted.audio;
  const stream = isOwn ? (microphone ??= new Microphone()).open() : await capture(wanted);
  await contextOf().resume();
  const [track] = stream.getAudioTracks();
  if (track) listen('microphone', track);
  return stream;
};

function listen(key, track) {
  if (ears.get(key)?.track === track) return;
  ears.get(key)?.close();
  ears.set(key, new Ear(track));
}

function poll() {
  for (const { mid, receiver, currentDirection } of connections.at(-1)?.getTransceivers() ?? []) {
    if (currentDirection !== 'recvonly' && currentDirection !== 'sendrecv') continue;
    if (mid !== null && receiver.track.kind === 'audio') listen(mid, receiver.track);
  }
  for (const ear of ears.values()) ear.poll();
}
setInterval(poll, POLL_MS);

// The media of the peer with this name; the only one where all come in one.
function midOf(name, track = 'audio') {
  const peer = window.millrace.peers.find((person) => person.name === name)?.peer;
  return window.millrace.slots.find((slot) => slot.peer === peer && slot.track === track)?.mid ?? null;
}

const earOf = (name) => ears.get(name === 'microphone' ? name : midOf(name));

window.probe = {
  say: (base64) => microphone.say(base64),
  tone: (frequency) => microphone.tone(frequency),
  midOf,
  tones: (name, frequencies) => earOf(name)?.tones(frequencies) ?? null,
  tonesOf: (mid, frequencies) => ears.get(mid)?.tones(frequencies) ?? null,
  levels(name, from, to = Infinity) { poll(); return earOf(name)?.between(from, to) ?? []; },
  // When somebody was muted (`value` true) and unmuted since a time.
  mutes: (name, from) => (mutes.get(earOf(name)?.track.id) ?? []).filter(({ at }) => at >= from),
  played(name, from, to = Infinity) { poll(); return earOf(name)?.played(from, to) ?? []; },
  get mids() { return [...ears.keys()].filter((key) => key !== 'microphone'); },
  get connections() { return connections.length; },
  get userFragment() { return /a=ice-ufrag:(\S+)/.exec(connections.at(-1)?.currentLocalDescription?.sdp ?? '')?.[1] ?? null; },
  // The events of bots that came, with the time of each.
  dialogue: () => window.millrace.events.filter(({ event, payload }) => event === 'data' && payload?.label === 'dialog')
    .map(({ at, payload }) => ({ ...JSON.parse(payload.text), at })),
};
})();
