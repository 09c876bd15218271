/** The component library's dark theme; not through its index, which would bring all of it. */
export { darkTheme } from 'naive-ui/es/themes/dark'
