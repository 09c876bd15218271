/** 已保存视图菜单的文字。 */
export default {
  usual: '默认',
  name: '视图名称',
  save: '保存视图',
  replace: '用当前视图覆盖 {name}',
  delete: '删除 {name}',
  deleteTitle: '删除视图 {name}？',
  deleteText: '所有人都将看不到该视图；已复制的链接仍可使用。',
  hint: '保存当前显示的内容，所有人可见；也可以直接复制网址。',
  nothing: '请先做出更改，再保存为视图。',
}
