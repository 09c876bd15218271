/** Texts of the datasets domain. */
import lineage from './lineage.en'
import rows from './rows.en'
import statistics from './statistics.en'
import tasks from './tasks.en'
import upload from './upload.en'
import versions from './versions.en'

export default {
  ...rows,
  ...upload,
  lineage,
  statistics,
  tasks,
  versions,
  title: 'Datasets',
  one: 'Dataset',
  subtitle: 'Upload, inspect, clean and version your training data.',
  upload: 'Upload dataset',
  filter: 'Search by name or description',
  column: { name: 'Name', state: 'State', format: 'Format', rows: 'Rows', size: 'Size', source: 'Source', created: 'Updated' },
  state: { creating: 'Importing', ready: 'Ready', failed: 'Failed' },
  empty: {
    title: 'No datasets yet',
    text: 'Drop JSONL, JSON, CSV or Parquet files anywhere on this page. You can also import from the platform’s disk, the Hugging Face Hub or S3.',
    filtered: 'No results for “{text}”',
    filteredText: 'Searched names and descriptions.',
  },
  origin: { upload: '{name}', path: '{name} on the platform’s disk', hub: '{name} on the Hub', s3: '{name}', pipeline: 'derived from {name}', generation: 'generated from {name}' },
  format: {
    'prompt-answer': 'Prompt and answer',
    messages: 'Conversations',
    preference: 'Preference pairs',
    text: 'Plain text',
    'verl-rl': 'verl RL rows',
    unknown: 'Unknown',
  },
  formatUse: {
    'prompt-answer': 'For supervised fine-tuning, and for reinforcement learning with verifiable answers.',
    messages: 'For supervised fine-tuning on assistant turns, and for reinforcement learning.',
    preference: 'For preference training such as DPO.',
    text: 'For continued pre-training.',
    'verl-rl': 'For reinforcement learning, in verl’s own format.',
    unknown: 'No recipe can use this format as is. Rename or convert columns with a data pipeline.',
  },
  facts: {
    format: 'Format',
    rows: 'Rows',
    split: '{n} in {name}',
    asJson: '{size} as JSON',
    head: 'Version',
    source: 'Source',
    created: 'created {time}',
    column: '{column}: {part}',
    and: '; ',
  },
  tab: { sample: 'Sample', statistics: 'Statistics', quality: 'Quality', duplicates: 'Duplicates', versions: 'Versions', lineage: 'Lineage', quarantine: 'Quarantine' },
  revision: { label: 'Version', splitLabel: 'Split', branches: 'Branches', tags: 'Tags', version: 'Version {id}', split: '{name} · {n} rows' },
  columns: {
    title: 'Columns',
    name: 'Name',
    type: 'Type',
    part: 'Role',
    nulls: 'Missing',
    empty: 'Empty',
    parts: { prompt: 'prompt', answer: 'answer', messages: 'messages', chosen: 'chosen response', rejected: 'rejected response', text: 'text', data_source: 'source', reward_model: 'expected answer' },
  },
  warnings: { empty_values: 'Column {column} is empty in {n} rows.', format_unknown: 'Format not recognized.', rows_in_quarantine: '{n} rows were rejected and moved to quarantine, each with a reason.' },
  train: 'Train',
  clean: 'Clean',
  add: 'Add rows',
  download: { jsonl: 'JSON Lines', csv: 'CSV', parquet: 'Parquet' },
  edit: { open: 'Edit name and description', title: 'Name and description', save: 'Save' },
  creation: {
    title: 'Import',
    leave: 'You can leave this page; the import continues.',
    failed: 'Nothing was imported. Try again, or delete the dataset and upload a corrected file.',
    none: 'No rows yet',
    noneText: 'The import that should have created them no longer exists.',
  },
  remove: {
    title: 'Delete {name}?',
    text: 'Deletes all versions and their rows ({n} in the latest). Finished jobs keep their results, but can’t be rerun with this data.',
    textEmpty: 'It has no rows.',
    uses: 'Used by: {names}.',
    usesMore: 'Used by: {names} and {n} more.',
    done: 'Deleted {name}.',
  },
}
