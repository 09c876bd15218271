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
  subtitle: 'Rows to learn from: uploaded, looked at, cleaned, kept in versions.',
  upload: 'Upload a dataset',
  filter: 'Find by name or description',
  column: { name: 'Name', state: 'State', format: 'Format', rows: 'Rows', size: 'Size', source: 'From', created: 'Changed' },
  state: { creating: 'Being read', ready: 'Ready', failed: 'Failed' },
  empty: {
    title: 'No datasets yet',
    text: 'Upload JSONL, JSON, CSV or Parquet files: drop them anywhere on this page. Or import from the platform’s disk, a hub or S3.',
    filtered: 'Nothing matches “{text}”',
    filteredText: 'Names and descriptions are searched.',
  },
  origin: { upload: '{name}', path: '{name} on the platform’s disk', hub: '{name} on the hub', s3: '{name}', pipeline: 'made of {name}', generation: 'generated from {name}' },
  format: {
    'prompt-answer': 'Prompt and answer',
    messages: 'Conversations',
    preference: 'Preference pairs',
    text: 'Plain text',
    'verl-rl': 'verl RL rows',
    unknown: 'Unknown',
  },
  formatUse: {
    'prompt-answer': 'Good for supervised training, and for reinforcement learning with a checked answer.',
    messages: 'Good for supervised training on the assistant’s turns, and for reinforcement learning.',
    preference: 'Good for learning from comparisons.',
    text: 'Plain text without questions or answers.',
    'verl-rl': 'Good for reinforcement learning, as verl reads it.',
    unknown: 'No recipe can learn from this as it is. Rename or convert columns with a pipeline.',
  },
  facts: {
    format: 'Format',
    rows: 'Rows',
    split: '{n} in {name}',
    asJson: '{size} as JSON',
    head: 'Version',
    source: 'From',
    created: 'made {time}',
    column: '{column} is the {part}',
    and: '; ',
  },
  tab: { sample: 'Sample', statistics: 'Statistics', quality: 'Quality', duplicates: 'Duplicates', versions: 'Versions', lineage: 'Lineage', quarantine: 'Not taken' },
  revision: { label: 'Version', splitLabel: 'Split', branches: 'Branches', tags: 'Tags', version: 'Version {id}', split: '{name} · {n} rows' },
  columns: {
    title: 'Columns',
    name: 'Name',
    type: 'Type',
    part: 'Part',
    nulls: 'Missing',
    empty: 'Empty',
    parts: { prompt: 'prompt', answer: 'answer', messages: 'messages', chosen: 'chosen answer', rejected: 'rejected answer', text: 'text', data_source: 'source', reward_model: 'expected answer' },
  },
  warnings: { empty_values: 'Column {column} is empty in {n} rows.', format_unknown: 'The format was not recognised.', rows_in_quarantine: '{n} rows were not taken; they are kept aside with the reason of each.' },
  train: 'Train on this',
  clean: 'Clean',
  add: 'Add rows',
  download: { jsonl: 'JSON lines', csv: 'CSV', parquet: 'Parquet' },
  edit: { open: 'Rename or describe', title: 'Name and description', save: 'Save' },
  creation: {
    title: 'Import',
    leave: 'You may leave this page; the rows are read meanwhile.',
    failed: 'Nothing was kept. Try again, or delete the dataset and upload a corrected file.',
    none: 'No rows yet',
    noneText: 'What was to make them is no longer known.',
  },
  remove: {
    title: 'Delete {name}?',
    text: 'All versions with their rows go, {n} in the newest. Finished jobs keep their results, but cannot be run again with this data.',
    textEmpty: 'It has no rows yet.',
    uses: 'Used by: {names}.',
    usesMore: 'Used by: {names} and {n} more.',
    done: '{name} was deleted.',
  },
}
