/** Views that are saved under a name: what a page shows, as its address has it. */
export { default as SavedViewsMenu } from './SavedViewsMenu.vue'
