import type { Rule, Violation } from './rule.ts';
import { followUploads, type NamedUpload } from './uploads.ts';

const ofAnother = 'of another upload than the parts before it';
const sendAllParts =
  'After another initiate, send all parts again, from 1 on, with the new uploadId and key; or go on with the earlier ones. Each upload has its own parts.';

export const uploadIdentity: Rule = {
  id: 'upload-identity',
  clause: '4.8, rule 3',
  holds: 'the uploadId and key of initiate for all chunks of an upload, and for its complete',
  advice:
    'Keep the uploadId and key that initiate answered, together, and send both with every chunk and with complete.',
  needsAllBefore: true,
  judge(calls) {
    const { named } = followUploads(calls);
    // Without an approval there is no upload to name. Other rules judge these calls.
    const judged = named.filter(
      ({ meant, call: { detail } }) => meant !== null || (detail.operationStatus ?? 'APPROVED') === 'APPROVED',
    );
    const violations = judged.flatMap((namedUpload): Violation[] => {
      const seen = whatChanged(namedUpload);
      if (seen === null) return [];
      const violation = {
        ...{ severity: 'failed' as const, calls: [namedUpload.call] },
        seen: `${namedUpload.call.endpoint} ${seen}`,
      };
      return [
        seen === ofAnother
          ? { ...violation, expected: 'the uploadId and key of those parts', advice: sendAllParts }
          : { ...violation, expected: 'both as initiate answered them' },
      ];
    });
    return { isExercised: judged.some(({ call }) => call.endpoint === 'upload.chunk'), violations };
  },
};

function whatChanged({ call: { detail }, byId, byKey, meant }: NamedUpload): string | null {
  if (byId !== null && byId === byKey) return byId === meant ? null : ofAnother;
  const missing = [
    ...(detail.uploadId === undefined ? ['uploadId'] : []),
    ...(detail.key === undefined ? ['key'] : []),
  ];
  if (missing.length > 0) return `without ${missing.join(' and ')}`;
  if (byId !== null && byKey !== null) return 'with the uploadId of one upload and the key of another';
  if (byId !== null) return "with the upload's uploadId and another key";
  if (byKey !== null) return "with the upload's key and another uploadId";
  return 'with an uploadId and key that no initiate of this launch answered';
}
