/** Names of recipes as the API lists them. They are read once for all pages of a test run, so tests share them. */
export const RECIPE_NAMES = {
  items: [
    { id: 'grpo', title: { en: 'GRPO', zh: 'GRPO' }, engine: 'verl-ppo' },
    { id: 'sft', title: { en: 'Supervised fine-tuning', zh: '监督微调' }, engine: 'verl-sft' },
  ],
}
