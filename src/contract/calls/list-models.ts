import { models, readModels, type KnownModels } from '../inference/inference.ts';
import { defineCall } from './define-call.ts';
import { ofFiles } from './errors.ts';

/** GET /public/inference/models (spec 4.7). @assumed model-fields: the names of the fields, and that it answers an array */
export const listModels = defineCall<object, KnownModels>()({
  endpoint: 'inference.models',
  group: 'Inference',
  takesBearer: true,
  section: '4.7',
  summary: 'Models that can be run',
  description:
    'Lists the active models, each with its task and the names of its classes. The key may also come as a bearer token.',
  method: 'GET',
  path: '/public/inference/models',
  response: models,
  answerFields: [],
  descriptions: { id: 'Identifier of the model, for `modelId` of a run.', type: 'Task of the model.' },
  errors: { ...ofFiles, 500: 'Internal Server Error' },
  assumptions: [
    {
      id: 'model-fields',
      section: '2.6',
      assumes: 'the models are a list of `{id, name, version, type, labels}`',
      probe: 'list-models',
      about: 'answer',
    },
  ],
  decode: (body) => readModels.parse(body),
});
