/** Texts of metrics that go to Weights & Biases as well. */
export default {
  reporting: {
    title: 'Weights & Biases',
    off: 'Off',
    about:
      'Also sends the metrics to W&B. A resumed job continues its run; if W&B can’t be reached, training isn’t affected.',
    project: 'W&B project',
    entity: 'Team or user',
    entityHelp: 'Default: the API key’s own.',
    name: 'Run name',
    nameHelp: 'Default: the job’s name. In a sweep: the group of its runs.',
    tags: 'W&B tags',
    sentTo: 'Weights & Biases:',
    step: 'sent up to step {step}',
    problem: 'Can’t send metrics: {problem}',
  },
}
