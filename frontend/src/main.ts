/** Starts the dashboard. */
import { createPinia } from 'pinia'
import { createApp } from 'vue'

import App from './App.vue'
import { i18n, initialLocale, setLocale } from './i18n'
import { router } from './router'
import './theme/base.css'

// No top-level await: files that this one waits for may need it.
const texts = setLocale(initialLocale())
// The first navigation asks who is logged in meanwhile.
const app = createApp(App).use(createPinia()).use(i18n).use(router)
void texts.then(() => app.mount('#app'))
