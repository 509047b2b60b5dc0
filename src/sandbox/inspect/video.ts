import { open, type FileHandle } from 'node:fs/promises';
import { notA, nowhere, type Found, type Inspector } from './facts.ts';

/** MPEG transport stream (as MISB wants it), ISO base media (MP4, MOV) or Matroska (MKV, WebM), with a video track each. */
export const inspectVideo: Inspector = async ({ path }) => {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (await hasVideoProgram(file, size)) return video('video/mp2t');
    if (await hasVideoTrack(file, size)) return video('video/mp4');
    if (await hasMatroskaVideo(file, size)) return video('video/x-matroska');
  } finally {
    await file.close();
  }
  throw notA('video (MPEG transport stream, MP4, Matroska) with a video track');
};

function video(mediaType: string): Found {
  return { kind: 'video', mediaType, ...nowhere };
}

const packetBytes = 188;
const searchedPackets = 20_000;
/** Stream types of ISO/IEC 13818-1 that are video: MPEG-1, MPEG-2, MPEG-4, H.264, JPEG 2000, H.265. */
const videoStreamTypes = new Set([0x01, 0x02, 0x10, 0x1b, 0x21, 0x24]);

/** Follows the program association table to a program map with a video stream. Every packet on the way must be in sync. */
async function hasVideoProgram(file: FileHandle, size: number): Promise<boolean> {
  const { buffer } = await file.read(Buffer.alloc(Math.min(size, searchedPackets * packetBytes)), 0, null, 0);
  const mapPids = new Set<number>();
  for (let at = 0; at + packetBytes <= buffer.length; at += packetBytes) {
    if (buffer[at] !== 0x47) return false;
    const section = sectionOf(buffer.subarray(at, at + packetBytes));
    if (!section) continue;
    if (section.pid === 0) programMapPids(section.bytes).forEach((pid) => mapPids.add(pid));
    else if (mapPids.has(section.pid) && streamTypes(section.bytes).some((type) => videoStreamTypes.has(type)))
      return true;
  }
  return false;
}

/** The table section that begins in a packet, from its table id to the end of the packet. */
function sectionOf(packet: Buffer): { pid: number; bytes: Buffer } | null {
  const starts = (packet.readUInt8(1) & 0x40) !== 0;
  const hasPayload = (packet.readUInt8(3) & 0x10) !== 0;
  const adaptation = (packet.readUInt8(3) & 0x20) !== 0 ? 1 + packet.readUInt8(4) : 0;
  const payload = packet.subarray(4 + adaptation);
  if (!starts || !hasPayload || payload.length < 1) return null;
  const bytes = payload.subarray(1 + payload.readUInt8(0));
  return bytes.length < 12 ? null : { pid: packet.readUInt16BE(1) & 0x1fff, bytes };
}

/** Bytes of a section's body: after its header of eight bytes, before the checksum of four. */
function bodyOf(section: Buffer): Buffer {
  const length = section.readUInt16BE(1) & 0x0fff;
  return section.subarray(8, Math.max(8, Math.min(section.length, 3 + length - 4)));
}

function programMapPids(section: Buffer): number[] {
  const body = bodyOf(section);
  if (section[0] !== 0x00) return [];
  return Array.from(
    { length: Math.floor(body.length / 4) },
    (_, i) => [body.readUInt16BE(i * 4), body.readUInt16BE(i * 4 + 2) & 0x1fff] as const,
  ).flatMap(([program, pid]) => (program === 0 ? [] : [pid]));
}

function streamTypes(section: Buffer): number[] {
  const body = bodyOf(section);
  if (section[0] !== 0x02 || body.length < 4) return [];
  const types: number[] = [];
  for (
    let at = 4 + (body.readUInt16BE(2) & 0x0fff);
    at + 5 <= body.length;
    at += 5 + (body.readUInt16BE(at + 3) & 0x0fff)
  )
    types.push(body.readUInt8(at));
  return types;
}

const containers = new Set(['moov', 'trak', 'mdia', 'moof', 'traf']);
const maxBoxes = 10_000;

/** Walks the boxes of an ISO base media file: `ftyp` first, a `hdlr` of type `vide` inside, and no box that leaves the file. */
async function hasVideoTrack(file: FileHandle, size: number): Promise<boolean> {
  let found = false;
  let boxes = 0;
  async function walk(from: number, to: number): Promise<boolean> {
    for (let at = from; at < to;) {
      const head = (await file.read(Buffer.alloc(32), 0, 32, at)).buffer;
      const type = head.subarray(4, 8).toString('latin1');
      const declared = head.readUInt32BE(0);
      const length = declared === 0 ? to - at : declared === 1 ? Number(head.readBigUInt64BE(8)) : declared;
      const headBytes = declared === 1 ? 16 : 8;
      if ((boxes += 1) > maxBoxes || length < headBytes || at + length > to || (at === 0 && type !== 'ftyp'))
        return false;
      if (type === 'hdlr' && head.subarray(headBytes + 8, headBytes + 12).toString('latin1') === 'vide') found = true;
      if (containers.has(type) && !(await walk(at + headBytes, at + length))) return false;
      at += length;
    }
    return true;
  }
  return (await walk(0, size)) && found;
}

/** Elements of Matroska (RFC 9559) on the way to what kind a track is. */
const matroska = { header: 0x1a45dfa3, segment: 0x18538067, tracks: 0x1654ae6b, entry: 0xae, type: 0x83 } as const;
const matroskaParents: ReadonlySet<number> = new Set([matroska.segment, matroska.tracks, matroska.entry]);
const videoTrack = 1;

/** Walks the elements of an EBML file: its header first, a track of type video inside, and none that leaves the file. */
async function hasMatroskaVideo(file: FileHandle, size: number): Promise<boolean> {
  let elements = 0;
  /** True, or false for what is no EBML; null where there is no such track. */
  async function walk(from: number, to: number): Promise<boolean | null> {
    for (let at = from; at < to;) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(13), 0, 13, at);
      const id = readVint(buffer.subarray(0, Math.min(bytesRead, 12)), true);
      const length = id && readVint(buffer.subarray(id.bytes, bytesRead), false);
      if (!id || !length || (elements += 1) > maxBoxes || (at === 0 && id.value !== matroska.header)) return false;
      const start = at + id.bytes + length.bytes;
      // A live recording leaves the length of its segment open: it goes on to the end.
      const end = length.isUnknown ? to : start + length.value;
      if (end > to) return false;
      if (id.value === matroska.type && length.value === 1) {
        if (buffer[id.bytes + length.bytes] === videoTrack) return true;
      } else if (matroskaParents.has(id.value)) {
        const inside = await walk(start, end);
        if (inside !== null) return inside;
      }
      at = end;
    }
    return null;
  }
  return (await walk(0, size)) === true;
}

/** A number of variable length (RFC 8794, 4): leading zeros tell how many bytes it takes. An id keeps its marker. */
function readVint(bytes: Buffer, isId: boolean): { value: number; bytes: number; isUnknown: boolean } | null {
  const [first = 0] = bytes;
  const length = Math.clz32(first) - 23;
  if (first === 0 || length > bytes.length || (isId && length > 4)) return null;
  const ones = 2 ** (8 - length) - 1;
  let value = isId ? first : first & ones;
  let isUnknown = (first & ones) === ones;
  for (const byte of bytes.subarray(1, length)) {
    value = value * 256 + byte;
    isUnknown &&= byte === 255;
  }
  return { value, bytes: length, isUnknown };
}
