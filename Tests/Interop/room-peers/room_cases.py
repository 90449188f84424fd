"""room_cases.py MILLRACE [CASE...]: the cases of room.sh. See there."""
import base64
import http.client
import json
import os
import signal
import statistics
import sys
import time
import traceback
import urllib.parse

import network
import sound
import room_firefox
from bench import Failure
from room_browser import Browser
from room_firefox import Firefox
from room_stage import Stage

# Quieter is silence: dither, and what Opus makes of it.
FLOOR = -50
# A tone of somebody who must not be heard is at least this much below those that must, in dB. (Opus makes some of each tone.)
APART = 35
# How long a voice may still be heard after the interruption was reported; generous, for machines that are busy.
SILENT_WITHIN_MS = 1500
# What is under way when an interruption is reported: a packet, and the receiver's buffer.
UNDER_WAY_MS = 300
# For how long the page mutes a bot that was cut off.
IN_FLIGHT_MS = 300
ANN, BEN, BOT = 440, 1000, 1720
CASES = {}
# Those that need Firefox, and a sound server for it.
OF_FIREFOX = set()


def name_of(function):
    return function.__name__.replace("_", "-")


def case(function):
    """Registers a case under its name."""
    CASES[name_of(function)] = function
    return function


def of_firefox(function):
    """Registers a case that is left out where Firefox is not installed."""
    OF_FIREFOX.add(name_of(function))
    return case(function)


def expect(condition, problem):
    if not condition:
        raise Failure(problem)


def loudest(browser, name, start, stop="Infinity"):
    """The loudest 10 ms of what a page hears of somebody between two times of its clock."""
    levels = [one["level"] for one in browser.run(f"probe.levels('{name}', {start}, {stop})") if one["level"] is not None]
    expect(levels, f"nothing of {name} was measured")
    return max(levels)


def wait_for(condition, problem, seconds=30):
    end_at = time.monotonic() + seconds
    while time.monotonic() < end_at:
        if value := condition():
            return value
        time.sleep(0.05)
    raise Failure(f"{problem} within {seconds} s")


def said(browser, event, after=0):
    """What bots have reported to a page since a time of its clock."""
    return [one for one in browser.run("probe.dialogue()") if one["event"] == event and one["at"] >= after]


def ms(value):
    return f"{value:.0f} ms"


# Who hears whom


def hears(browser, name, wanted, absent):
    """Waits until the sound of a peer has these tones, and checks that others are absent. Returns the margin in dB."""
    everybody = [ANN, BEN, BOT]
    last = {}

    def is_heard():
        last.clear()
        last.update(browser.run(f"probe.tones('{name}', {everybody})") or {})
        return last and all(last[str(tone)] > -30 for tone in wanted)

    wait_for(is_heard, f"{name} was not heard: {last}; {browser.state()}")
    # A second more, so that the whole of what is measured is of now. A browser that has just begun to play may still be stretching time.
    time.sleep(1)
    wait_for(is_heard, f"{name} is heard no longer: {last}; {browser.state()}")
    text = ", ".join(f"{tone} Hz {last[str(tone)]:.0f} dB" for tone in everybody)
    margin = min(last[str(tone)] for tone in wanted) - max(last[str(tone)] for tone in absent)
    expect(margin > APART, f"{name}: a tone is heard that must not be: {text}")
    return margin


def nothing_of(browser, tone):
    """Checks that no media of a page has a tone. Returns the loudest that was found."""
    found = [browser.run(f"probe.tonesOf('{mid}', [{tone}])")[str(tone)] for mid in browser.run("probe.mids")]
    expect(max(found) < -55, f"the own tone comes back: {max(found):.0f} dB")
    return max(found)


def hear_each_other(ann, ben):
    """Both hear the other and the bot, each in a medium of its own, and never themselves."""
    margins = [hears(ann, "Ben", [BEN], [ANN, BOT]), hears(ann, "Bot", [BOT], [ANN, BEN]),
               hears(ben, "Ann", [ANN], [BEN, BOT]), hears(ben, "Bot", [BOT], [ANN, BEN])]
    return min(margins), max(nothing_of(ann, ANN), nothing_of(ben, BEN))


# The bot


def first_sound(browser, name, start, floor=FLOOR, kind="levels"):
    """When somebody is first heard after a time; of the kind `played`, when it is not muted."""
    for one in browser.run(f"probe.{kind}('{name}', {start})"):
        if one["level"] is not None and one["level"] > floor:
            return one["at"]
    return None


def answer(browser, after, who="the page", seconds=40):
    """Waits until an answer that began after a time is heard: the events `replyStarted`, and when it was heard."""
    def begun():
        started = said(browser, "replyStarted", after)
        heard = started and first_sound(browser, "Bot", started[0]["at"] - 1000)
        return heard and (started[0]["at"], heard)
    return wait_for(begun, f"{who} has heard no answer", seconds)


def cut(browser, interrupted, until):
    """When the voice fell silent that was interrupted; nothing of it may come later. What comes after that must be the next answer."""
    sounds = [one["at"] for one in browser.run(f"probe.levels('Bot', {interrupted - 1000}, {until})")
              if one["level"] is not None and one["level"] > FLOOR]
    tail = [at for at in sounds if at > interrupted]
    last = interrupted
    for at in tail:
        # A pause of the voice may lie in what is under way; later nothing begins again.
        if at - last > 100 and at > interrupted + UNDER_WAY_MS:
            raise Failure(f"stale sound: {ms(at - interrupted)} after the interruption, behind a silence of {ms(at - last)}")
        last = at
    expect(last - interrupted < SILENT_WITHIN_MS, f"the voice was heard for {ms(last - interrupted)} after the interruption")
    played = [one["at"] for one in browser.run(f"probe.played('Bot', {interrupted - 1000}, {until})")
              if one["level"] is not None and one["level"] > FLOOR]
    return max(played, default=last) + 10


def muted(browser, interrupted):
    """Checks that a page has muted the bot for what was in flight, from the word of what played its voice, until the next reply at most."""
    word = next(one["at"] for one in said(browser, "interrupted", interrupted - 1000) if one.get("samples"))
    changes = browser.run(f"probe.mutes('Bot', {word})")
    expect([one["value"] for one in changes[:2]] == [True, False], f"the bot was not muted, or not for a while: {changes}")
    begin, end = (one["at"] for one in changes[:2])
    next_reply = [one["at"] for one in said(browser, "replyAudible", word)]
    # A timer may be late, never early.
    expect(end - begin >= IN_FLIGHT_MS - 1 or next_reply and end >= next_reply[0], f"the bot was muted for {ms(end - begin)} only")


@case
def bot(stage, kind=Browser):
    """Somebody speaks to the bot, hears its answer, and interrupts it."""
    microphone = stage.recording(6.0, "Hello, can you hear me?", 7.0, "Stop, please. I have another question.", 20.0)
    page = stage.join(stage.bot(), "Ann", microphone, kind=kind)
    began, heard = answer(page, 0)
    rows = "[...document.querySelectorAll('#turns li')].filter(row => row.querySelectorAll('.bar i').length > 1).length"
    interruption = page.wait("probe.dialogue().find(one => ['interrupted', 'bargeIn'].includes(one.event))", "nothing was interrupted", 30)
    second, second_heard = answer(page, interruption["at"])
    silent = cut(page, interruption["at"], second)
    muted(page, interruption["at"])
    wait_for(lambda: first_sound(page, "Bot", second, kind="played"), "the page plays no further answer")
    spoken = first_sound(page, "microphone", heard + 500)
    page.wait(f"{rows} > 1", "there are not two rows of times")
    page.wait("[...document.querySelectorAll('#log li')].filter(row => row.textContent.includes('(you spoke)')).length > 1",
              "there are not two transcripts")
    page.wait("[...document.querySelectorAll('#log li.bot')].some(row => row.textContent.includes('Hello, I am the bot'))",
              "the answer is not written")
    page.wait("document.querySelector('#log li.bot.cut') !== null", "the interrupted answer is not marked")
    level = loudest(page, "Bot", heard, interruption["at"])
    expect(level > -30, f"the answer is next to silent: {level:.0f} dB")
    expect(not page.problems(), f"errors of the page: {page.problems()}")
    waits = [turn["steps"][-1]["ms"] for turn in page.run("millrace.turns") if turn["steps"]]
    return (f"joined after {ms(page.run('millrace.joinedMs'))}, heard {ms(heard - began)} after the bot began, turns "
            f"{' and '.join(map(ms, waits))} from the end of speech; interrupted {ms(interruption['at'] - spoken)} after the voice began, "
            f"silent after {ms(silent - spoken)}")


@case
def three(stage):
    """Two people and a bot hear each other, and nobody hears themselves."""
    url = stage.tone(BOT)
    ann, ben = stage.join(url, "Ann", tone=ANN), stage.join(url, "Ben", tone=BEN)
    margin, own = hear_each_other(ann, ben)
    stage.stop()
    text = sound.check_tone(str(stage.folder / "bot.wav"), [ANN, BEN], [BOT])
    return f"tones apart by {margin:.0f} dB at least, the own below {own:.0f} dB; the bot hears {text}"


@case
def mix(stage):
    """The same in a room that mixes: one sound of all others."""
    url = stage.tone(BOT, "mix")
    ann, ben = stage.join(url, "Ann", tone=ANN), stage.join(url, "Ben", tone=BEN)
    margins = []
    for page, wanted, absent in ((ann, [BEN, BOT], [ANN]), (ben, [ANN, BOT], [BEN])):
        wait_for(lambda: len(page.run("probe.mids")) == 1, f"one sound was expected, not {page.run('probe.mids')}: {page.state()}")
        mid = page.run("probe.mids[0]")
        wait_for(lambda: min(page.run(f"probe.tonesOf('{mid}', {wanted})").values()) > -35, f"not everybody is heard: {page.state()}")
        time.sleep(1)
        found = page.run(f"probe.tonesOf('{mid}', {[ANN, BEN, BOT]})")
        margins.append(min(found[str(tone)] for tone in wanted) - max(found[str(tone)] for tone in absent))
        expect(margins[-1] > APART, f"the own tone comes back: {found}")
    stage.stop()
    text = sound.check_tone(str(stage.folder / "bot.wav"), [ANN, BEN], [BOT])
    return f"the own tone is {min(margins):.0f} dB below the others; the bot hears {text}"


@case
def vanish(stage):
    """A browser vanishes while the bot speaks: the other sees it leave, hears the rest, and goes on talking with the bot."""
    url = stage.bot()
    ann, ben = stage.join(url, "Ann"), stage.join(url, "Ben")
    ben.wait("probe.midOf('Bot') !== null && probe.midOf('Ann') !== null", "Ben does not receive both")
    start = ben.run("performance.now()")
    ann.run(stage.speech("Hello bot, this is Ann."))
    _, heard = answer(ben, start, "Ben")
    ann.vanish()
    killed, at = time.monotonic(), ben.run("performance.now()")
    ben.wait("!millrace.peers.some(one => one.name === 'Ann')", "Ben has not seen Ann leave", 45)
    gone = time.monotonic() - killed
    time.sleep(max(0, 1.5 - gone))
    level = loudest(ben, "Bot", at + 300, at + 1500)
    expect(level > -35, f"the bot fell silent when Ann vanished: {level:.0f} dB")
    page = ben.run("document.getElementById('log').textContent")
    expect("Ann has lost the connection" in page or "Ann has left" in page, "no line says that Ann is gone")
    wait_for(lambda: said(ben, "replyEnded", heard) or said(ben, "interrupted", heard), "the answer has no end", 40)
    start = ben.run("performance.now()")
    ben.run(stage.speech("Are you still there?"))
    began, heard = answer(ben, start, "Ben")
    return f"seen after {gone * 1000:.0f} ms, the next answer {ms(heard - start)} after speech began"


@case
def markup(stage):
    """A name and a message with markup are text."""
    name, message = "<img src=x onerror=alert(1)>\"'&amp;", "<script>window.broken = 1</script><b>bold</b>"
    url = stage.tone(BOT)
    ann, ben = stage.join(url, name), stage.join(url, "Ben")
    ben.wait(f"[...document.querySelectorAll('#people .name')].some(one => one.textContent === {name!r})", "the name is not shown as it is")
    ann.run(f"document.getElementById('line').value = {message!r}; document.getElementById('write').requestSubmit()")
    ben.wait(f"[...document.querySelectorAll('#log li')].some(row => row.textContent.includes({message!r}))",
             "the message is not shown as it is")
    for page in (ann, ben):
        found = page.run("document.querySelectorAll('#people img, #log img, #log script, #log b, #tiles img, #to img').length")
        expect(found == 0 and page.run("window.broken === undefined"), "markup of a name or message is in the page")
        expect(not page.problems(), f"errors of the page: {page.problems()}")
    return "shown as written"


@case
def late(stage):
    """Somebody who comes later, without a microphone, sees the bot and its state before anything is said."""
    url = stage.bot()
    ann = stage.join(url, "Ann")
    ann.wait("millrace.peers.some(one => one.isBot)", "Ann does not see that there is a bot")
    ben = stage.join(url, "Ben", query="&mic=0")
    ben.wait("millrace.peers.some(one => one.isBot && one.state)", "Ben does not see the state of the bot")
    state = ben.wait("!document.getElementById('bots').hidden && document.querySelector('.bot-line .state')?.textContent",
                     "Ben's page does not show the bot")
    expect(not said(ben, "transcript"), "something was said")
    return f"it says: {state}"


# Joins the room of a page as another member, sends what is asked for, and shares a file of that name.
STRANGER = """(async (name, fileName, requests) => {
  const socket = new WebSocket(`ws://${location.host}/room`, 'millrace-room.1');
  const answers = new Map();
  let last = 0;
  socket.onmessage = ({ data }) => { const message = JSON.parse(data); answers.get(message.answer)?.(message); };
  await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onclose = reject; });
  const ask = async (op, payload) => {
    const id = ++last;
    const answer = await new Promise((resolve) => { answers.set(id, resolve); socket.send(JSON.stringify({ id, op, payload })); });
    if (!answer.ok) throw new Error(answer.error.text);
    return answer.payload;
  };
  await ask('login', { version: 1, user: 'stranger', name });
  await ask('join', { room: 'lobby' });
  const { ticket } = await ask('file', { name: fileName, bytes: 1 });
  await fetch('files', { method: 'POST', body: 'x', headers: { Authorization: `Bearer ${ticket}` } });
  for (const [op, payload] of requests) await ask(op, payload);
})"""


def told(page, name, file, *requests):
    """What a stranger tells a page; waits until the last of it, a line, is there."""
    page.run(f"{STRANGER}({json.dumps(name)}, {json.dumps(file)}, {json.dumps([*requests, ['message', {'text': 'That is all'}]])})")
    page.wait("[...document.querySelectorAll('#log .text')].some(one => one.textContent === 'That is all')", "not all has come")


def event(label="dialog", **members):
    return ["data", {"label": label, "text": json.dumps(members)}]


@case
def disguise(stage):
    """Names cannot look like others by marks of direction, and times that cannot be are not shown."""
    page = stage.join(stage.tone(BOT), "Ben", query="&mic=0")
    told(page, "\u202eevil\u0085", "invoice\u202egnp.exe", event("other", event="state", state="hearing"))
    peer = "millrace.peers.find(one => one.user === 'stranger')"
    expect(not page.run(f"{peer}.isBot"), "data of another label makes a bot")
    names = page.run("[...document.querySelectorAll('#people .name, #log .who')].map(one => one.textContent)")
    expect(names.count("\ufffdevil\ufffd") == 3, f"a name is shown as it is not: {names}")
    link = page.run("(({ download, textContent }) => [download, textContent])(document.querySelector('#log a'))")
    expect(link == ["invoice_gnp.exe"] * 2, f"the file is {link}")
    kinds = page.run("['#log .who', '#log .text', '#log a', '#people .name'].map(one => "
                     "getComputedStyle(document.querySelector(one)).unicodeBidi)")
    expect(set(kinds) <= {"isolate", "plaintext"}, f"texts are not apart from what is around them: {kinds}")

    page.run("document.getElementById('leave').click(); document.getElementById('join').click()")
    page.wait("millrace.media === 'connected'", "Ben was not connected again")
    times = [("soon", -40), ("good", 120), ("early", -5000), ("late", 3_700_000), ("endless", 10 ** 400)]
    told(page, "Bot", "a", *(event(event="latency", name=name, ms=value) for name, value in times),
         event(event="speechEnded", delay=10 ** 12, time=10 ** 305), event(event="transcript", text="Hello", final=True, time=10 ** 305),
         event(event="replyStarted", time=-(10 ** 305)))
    expect(page.run(f"{peer}.isBot"), "data of the label of bots makes none")
    measured = page.run("document.getElementById('measured').textContent")
    expect(measured == "soon 0 ms · good 120 ms", f"times: {measured}")
    steps = page.run("millrace.turns.flatMap(turn => turn.steps.map(step => step.ms))")
    expect(all(value is not None and value <= 3_600_000 for value in steps), f"a turn has steps of {steps} ms")
    expect(not page.problems(), f"errors of the page: {page.problems()}")
    return f"{names[-1]}, {link[0]}, {measured}"


def silenced(ann, ben):
    """Ann is silent to Ben while she is muted, and heard again. Returns the level while she is muted."""
    ann.run("document.getElementById('mute').click()")
    ben.wait("millrace.peers.find(one => one.name === 'Ann').muted", "Ben does not see that Ann is muted")
    time.sleep(1.5)
    now = ben.run("performance.now()")
    level = loudest(ben, "Ann", now - 700) if ben.run("probe.midOf('Ann')") else -120
    expect(level < FLOOR, f"Ann is muted, and heard at {level:.0f} dB")
    ann.run("document.getElementById('mute').click()")
    hears(ben, "Ann", [ANN], [BEN, BOT])
    return level


def written(page, name, other):
    """Somebody writes a line, and it comes to another."""
    page.run("document.getElementById('line').value = 'Good evening'; document.getElementById('write').requestSubmit()")
    other.wait(f"[...document.querySelectorAll('#log li')].some(row => row.textContent === '{name}Good evening')",
               f"{name}'s message has not come")


def seen(page, name, other):
    """Somebody's picture comes to another, moves, and goes. Returns how long it took, and frames a second."""
    pressed = other.run("performance.now()")
    page.run("document.getElementById('camera').click()")
    tile = f"[...document.querySelectorAll('#tiles figure')].find(one => one.textContent === '{name}')?.querySelector('video')"
    other.wait(f"{tile}?.videoWidth > 0", f"{name}'s picture has not come")
    shown = other.run("performance.now()") - pressed
    before = other.run("millrace.stats().then(one => one.inbound.video.frames)")
    time.sleep(2)
    frames = other.run("millrace.stats().then(one => one.inbound.video.frames)") - before
    expect(frames > 0, f"{name}'s picture does not move")
    page.run("document.getElementById('camera').click()")
    other.wait(f"!{tile}", f"{name}'s tile stays")
    return shown, frames / 2


@case
def controls(stage):
    """Mute, a message, and a camera reach the other side."""
    url = stage.tone(BOT)
    ann, ben = stage.join(url, "Ann", tone=ANN), stage.join(url, "Ben", tone=BEN)
    hears(ben, "Ann", [ANN], [BEN, BOT])
    level = silenced(ann, ben)
    written(ann, "Ann", ben)
    shown, rate = seen(ann, "Ann", ben)
    for page in (ann, ben):
        expect(not page.problems(), f"errors of the page: {page.problems()}")
    return f"muted at {level:.0f} dB; the picture after {ms(shown)}, {rate:.0f} frames a second"


@of_firefox
def firefox(stage):
    """Somebody in Firefox and somebody in Chromium hear, see and write to each other, and hear the bot."""
    url = stage.tone(BOT)
    ann, ben = stage.join(url, "Ann", tone=ANN, kind=Firefox), stage.join(url, "Ben", tone=BEN)
    margin, own = hear_each_other(ann, ben)
    level = silenced(ann, ben)
    written(ann, "Ann", ben)
    written(ben, "Ben", ann)
    pictures = [seen(ann, "Ann", ben), seen(ben, "Ben", ann)]
    for page in (ann, ben):
        expect(not page.problems(), f"errors of the page: {page.problems()}")
    texts = (f"{ms(shown)}, {rate:.0f} frames a second" for shown, rate in pictures)
    return (f"tones apart by {margin:.0f} dB at least, the own below {own:.0f} dB; muted at {level:.0f} dB; "
            f"Firefox is seen after {' and Chromium after '.join(texts)}")


@of_firefox
def firefox_bot(stage):
    """Somebody in Firefox speaks to the bot, hears its answer, and interrupts it."""
    return bot(stage, Firefox)


def longest_gap(browser, name, start):
    """The longest time without a sound of somebody, in ms."""
    longest = now = 0
    for one in browser.run(f"probe.levels('{name}', {start})"):
        now = 0 if one["level"] is not None and one["level"] > FLOOR else now + 10
        longest = max(longest, now)
    return longest


@case
def ice_restart(stage):
    """ICE restarts in the session that there is, and the sound goes on."""
    url = stage.tone(BOT)
    ann, ben = stage.join(url, "Ann", tone=ANN), stage.join(url, "Ben", tone=BEN)
    hear_each_other(ann, ben)
    before, start = ann.run("probe.userFragment"), [page.run("performance.now()") for page in (ann, ben)]
    ann.run("window.dispatchEvent(new Event('online'))")
    ann.wait(f"probe.userFragment !== '{before}' && millrace.media === 'connected'", "ICE was not restarted")
    time.sleep(3)
    margin, _ = hear_each_other(ann, ben)
    expect(ann.run("probe.connections") == 1, "the page has begun another session")
    gaps = longest_gap(ann, "Bot", start[0]), longest_gap(ben, "Ann", start[1])
    expect(max(gaps) < 3000, f"nothing was heard for {ms(max(gaps))}")
    return f"longest gap {ms(gaps[0])} to Ann, {ms(gaps[1])} from Ann; apart by {margin:.0f} dB"


@case
def reload(stage):
    """A page that is loaded again is there again, and the other sees it go and come."""
    url = stage.tone(BOT)
    ann, ben = stage.join(url, "Ann", tone=ANN), stage.join(url, "Ben", tone=BEN)
    hear_each_other(ann, ben)
    peer = ben.run("millrace.peers.find(one => one.name === 'Ann').peer")
    ann.reload()
    ben.wait(f"millrace.peers.some(one => one.name === 'Ann' && one.peer !== '{peer}')", "Ann has not come again")
    ben.wait(f"!millrace.peers.some(one => one.peer === '{peer}')", "the first Ann is still there")
    ann.wait("millrace.media === 'connected'", "Ann was not connected again")
    margin, own = hear_each_other(ann, ben)
    joined = ann.run("millrace.joinedMs")
    return f"joined again after {ms(joined)}, apart by {margin:.0f} dB"


@case
def restart(stage):
    """The program ends in the midst of an answer and is started again: the page joins again, and talks with the bot again."""
    port = network.free_port()
    ann = stage.join(stage.bot(port), "Ann")
    start = ann.run("performance.now()")
    ann.run(stage.speech("Hello bot."))
    answer(ann, start)
    ended = stage.stop()
    ann.wait("millrace.state === 'reconnecting'", "the page has not noticed")
    stage.bot(port)
    begun = time.monotonic()
    ann.wait("millrace.state === 'joined' && millrace.media === 'connected'", "the page has not joined again")
    joined = time.monotonic() - begun
    start = ann.run("performance.now()")
    ann.run(stage.speech("Hello again."))
    answer(ann, start)
    return f"ended after {ended:.1f} s, joined again {joined * 1000:.0f} ms after the room was there"


@case
def leave(stage):
    """Ann leaves by a button and joins again, ten times; nothing is left over."""
    url = stage.tone(BOT)
    ann, ben = stage.join(url, "Ann", tone=ANN), stage.join(url, "Ben", tone=BEN)
    times = []
    for _ in range(10):
        ann.run("document.getElementById('leave').click()")
        ben.wait("!millrace.peers.some(one => one.name === 'Ann')", "Ben has not seen Ann leave")
        ann.run("document.getElementById('join').click()")
        ann.wait("millrace.media === 'connected' && millrace.firstSoundMs !== null", "Ann was not connected again")
        times.append(ann.run("millrace.firstSoundMs"))
    margin, _ = hear_each_other(ann, ben)
    expect(len(ben.run("millrace.peers")) == 2, f"Ben sees {ben.state()}")
    return f"first sound {ms(statistics.median(times))} after joining (median), apart by {margin:.0f} dB"


def handshake(address, origin):
    """The status of a WebSocket handshake with this origin."""
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    connection.request("GET", "/room", headers={
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Origin": origin,
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Protocol": "millrace-room.1"})
    response = connection.getresponse()
    connection.close()
    return response.status


@case
def page(stage):
    """The page is small, and pages of other origins do not get in."""
    address = urllib.parse.urlsplit(stage.tone(BOT))
    size = 0
    for path in ("/", "/room.js"):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        size += len(body)
        expect(response.status == 200, f"{path}: status {response.status}")
        expect("default-src 'none'" in response.getheader("Content-Security-Policy", ""), f"{path} has no strict policy")
        connection.close()
    expect(size <= 100_000, f"the page has {size} bytes")
    own = handshake(address, f"http://{address.netloc}")
    expect(own == 101, f"the page's own origin: status {own}")
    for origin in ("https://example.org", f"http://{address.hostname}.example.org:{address.port}", "null"):
        status = handshake(address, origin)
        expect(status == 403, f"origin {origin}: status {status}")
    return f"{size} bytes; other origins get 403"


def count(browser):
    return browser.run("millrace.stats().then(one => ({ received: one.inbound.audio.packets, lost: one.inbound.audio.lost, "
                       "sent: one.outbound.audio.packets }))")


@case
def long(stage):
    """Two people and a bot for five minutes: packets both ways, and gaps."""
    minutes = float(os.environ.get("MILLRACE_MINUTES", "5"))
    url = stage.tone(BOT)
    ann, ben = stage.join(url, "Ann", tone=ANN), stage.join(url, "Ben", tone=BEN)
    hear_each_other(ann, ben)
    before, start, begun = [count(page) for page in (ann, ben)], [page.run("performance.now()") for page in (ann, ben)], time.monotonic()
    while time.monotonic() < begun + minutes * 60:
        time.sleep(5)
        stage.check_alive()
    seconds = time.monotonic() - begun
    after = [count(page) for page in (ann, ben)]
    heard = [(page, name, at) for page, at, other in ((ann, start[0], "Ben"), (ben, start[1], "Ann")) for name in (other, "Bot")]
    gaps = [longest_gap(*one) for one in heard]
    hear_each_other(ann, ben)
    texts = []
    for name, first, last in zip(("Ann", "Ben"), before, after):
        expect(last["received"] > first["received"] and last["sent"] > first["sent"], f"{name}: no packets")
        sent, received, lost = (last[key] - first[key] for key in ("sent", "received", "lost"))
        # 50 packets a second of each of the two others.
        texts.append(f"{name} sent {sent}, received {received} of {seconds * 100:.0f}, lost {lost}")
        expect(received > 0.9 * seconds * 100, f"too few packets: {texts[-1]}")
    expect(max(gaps) < 3000, f"nothing was heard for {ms(max(gaps))}")
    return f"{seconds:.0f} s: {'; '.join(texts)}; longest gap {ms(max(gaps))}"


DIALOGUE = [("Is there a table free tonight?", "Yes, there is one by the window, at eight. For how many people shall I keep it?"),
            ("For two, please.", "A table for two by the window, at eight. If you like to sit outside, tell me: the terrace is open until "
                                 "ten, and there are blankets.")]


@case
def picture(stage):
    """The page in a dialogue of two turns, as a picture for the README."""
    path = os.environ.get("PICTURE", str(stage.folder / "page.png"))
    turns = [{"hears": asked, "thinks": 200, "says": says} for asked, says in DIALOGUE]
    ann = stage.join(stage.bot(scenario={"turns": turns, "checksPlayback": True}), "Ann")
    ann.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    for number, (asked, _) in enumerate(DIALOGUE):
        if number > 0:
            ann.wait("millrace.peers[0].state === 'listening'", "the bot does not listen", 60)
        time.sleep(1)
        start = ann.run("performance.now()")
        ann.run(stage.speech(asked))
        answer(ann, start)
    # Within a word, so that the meter shows it.
    ann.wait("millrace.peers[0].level > 0.1", "the bot is not heard")
    ann.picture(path)
    return path if "PICTURE" in os.environ else "taken"


def attempt(millrace, name):
    begun, stage = time.monotonic(), Stage(millrace)
    try:
        seen, is_good = CASES[name](stage), True
    except (Failure, ValueError, OSError, KeyError, IndexError) as problem:
        seen, is_good = f"{type(problem).__name__}: {problem}", False
    except Exception:
        seen, is_good = traceback.format_exc(), False
    finally:
        stage.close()
    print(f"{'ok' if is_good else 'FAILED'} {name}: {seen} ({time.monotonic() - begun:.0f} s)", flush=True)
    return is_good


def main():
    if len(sys.argv) < 2:
        print("usage: room.sh MILLRACE [CASE...]", file=sys.stderr)
        return 2
    # A time limit from outside: what was started ends with this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    millrace, *names = sys.argv[1:]
    if names == ["--list"]:
        print("\n".join(CASES))
        return 0
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print(f"room.sh: no case {', '.join(unknown)}; --list shows them", file=sys.stderr)
        return 2
    left_out = {name for name, variable in (("long", "LONG"), ("picture", "PICTURE")) if not os.environ.get(variable)}
    if not names and not room_firefox.is_installed():
        print(f"left out: {', '.join(sorted(OF_FIREFOX))}; install {' and '.join(room_firefox.PROGRAMS)}", flush=True)
        left_out |= OF_FIREFOX
    # One after the other: what is measured would suffer from other browsers.
    results = [attempt(millrace, name) for name in names or [name for name in CASES if name not in left_out]]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


sys.exit(main())
