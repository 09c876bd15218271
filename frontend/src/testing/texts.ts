/** Tests have the texts of both languages from the start. */
import { LOCALES, loadAllTexts } from '@/i18n'

await Promise.all(LOCALES.map(loadAllTexts))
