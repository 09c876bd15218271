/** Texts of the menu of saved views. */
export default {
  usual: 'Default',
  name: 'Name of the view',
  save: 'Save view',
  replace: 'Replace {name} with the current view',
  delete: 'Delete {name}',
  deleteTitle: 'Delete view {name}?',
  deleteText: 'It disappears for everybody. Links that were copied from it still work.',
  hint: 'Saves what is shown now, for everybody. You can also copy the address.',
  nothing: 'Change something first, then save it as a view.',
}
