/** Texts of the choice of a recipe. */
export default {
  title: 'Choose a recipe',
  change: 'Change the recipe',
  search: 'Find a recipe',
  none: 'No recipe matches.',
  wants: 'Learns from {formats}',
  paper: 'Paper ({year})',
  experimental: 'experimental',
  experimentalHelp: 'The engine marks this trainer as experimental: it may change or go with its next release.',
  family: { supervised: 'Supervised', rl: 'Reinforcement learning', preference: 'Preference', agent: 'Agents' },
  familyHelp: {
    supervised: 'The model learns to write what the data says.',
    rl: 'The model answers, rewards score the answers, and better answers become more likely.',
    preference: 'The model learns which of two answers people like better, or how answers were rated.',
    agent: 'The model acts over several turns, calls tools and learns from how the episode ends.',
  },
}
