/** Chinese words of the component library; not through its index, which would bring all of it. */
export { default as dateLocale } from 'naive-ui/es/locales/date/zhCN'
export { default as locale } from 'naive-ui/es/locales/common/zhCN'
