/** Texts of the choice of a recipe. */
export default {
  title: 'Choose a recipe',
  change: 'Change recipe',
  search: 'Search recipes',
  none: 'No matching recipes.',
  suits: 'Suits your data',
  suitsHelp: 'Usual for this kind of data: {formats}.',
  wants: 'Data: {formats}',
  paper: 'Paper ({year})',
  experimental: 'experimental',
  experimentalHelp: 'The engine marks this trainer as experimental. It may change or be removed in a future release.',
  family: { supervised: 'Supervised', rl: 'Reinforcement learning', preference: 'Preference', agent: 'Agents' },
  familyHelp: {
    supervised: 'The model learns to reproduce the data.',
    rl: 'The model generates responses, rewards score them, and better responses become more likely.',
    preference: 'The model learns from preferred and rejected responses, or from rated ones.',
    agent: 'The model acts over several turns, calls tools and learns from the outcome of the episode.',
  },
}
