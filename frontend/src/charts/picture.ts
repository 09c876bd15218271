/** Pictures of charts as files, with the words that stand around a drawing on its page: title, key and legend. */
import type { Palette } from '@/theme/palettes'
import { SANS } from '@/theme/naive'

import { cutText } from './cutText'
import { PIXEL_RATIO } from './usePicture'

interface LegendItem {
  label: string
  color: string
  dash?: 'solid' | 'dashed' | 'dotted'
}

export interface PictureWords {
  title: string
  /** The metric's key, or which runs are drawn. */
  subtitle?: string
  legend: readonly LegendItem[]
}

/** A drawing as the page shows it, and its size there. */
export interface Drawing {
  url: string
  width: number
  height: number
}

const MARGIN = 16
const TITLE_PX = 22
const LINE_PX = 18
const SWATCH_PX = 16
const GAP_PX = 14
const TITLE_FONT = `600 15px ${SANS}`
const TEXT_FONT = `12px ${SANS}`
const DASHES = { solid: [], dashed: [5, 3], dotted: [2, 2] }

interface PlacedItem extends LegendItem {
  x: number
  row: number
}

/** The longest beginning of a text that is no wider than the picture. */
export function fitText(text: string, width: number, measure: (text: string) => number): string {
  let longest = text.length
  while (longest > 1 && measure(cutText(text, longest)) > width) longest -= 1
  return cutText(text, longest)
}

/** The legend in rows, as many as it takes. */
export function placeLegend(
  items: readonly LegendItem[],
  width: number,
  measure: (text: string) => number,
): PlacedItem[] {
  let x = 0
  let row = 0
  return items.map((item) => {
    const label = fitText(item.label, width - SWATCH_PX, measure)
    const wide = SWATCH_PX + measure(label)
    if (x > 0 && x + wide > width) [x, row] = [0, row + 1]
    const placed = { ...item, label, x, row }
    x += wide + GAP_PX
    return placed
  })
}

function readImage(url: string): Promise<HTMLImageElement> {
  return new Promise((resolve, reject) => {
    const image = new Image()
    image.onload = () => {
      resolve(image)
    }
    image.onerror = () => {
      reject(new Error('the drawing could not be read'))
    }
    image.src = url
  })
}

function drawItem(pen: CanvasRenderingContext2D, item: PlacedItem, top: number, ink: string): void {
  const [x, y] = [MARGIN + item.x, top + item.row * LINE_PX + LINE_PX / 2]
  pen.strokeStyle = item.color
  pen.lineWidth = 3
  pen.setLineDash(DASHES[item.dash ?? 'solid'])
  pen.beginPath()
  pen.moveTo(x, y)
  pen.lineTo(x + SWATCH_PX - 4, y)
  pen.stroke()
  pen.fillStyle = ink
  pen.fillText(item.label, x + SWATCH_PX, y)
}

/** The picture as a PNG, on the page's own ground. */
export async function composePicture(drawing: Drawing, words: PictureWords, palette: Palette): Promise<Blob> {
  const image = await readImage(drawing.url)
  const canvas = document.createElement('canvas')
  const pen = canvas.getContext('2d')
  if (pen === null) throw new Error('this browser draws no pictures')
  const measure = (text: string) => pen.measureText(text).width
  pen.font = TEXT_FONT
  const legend = placeLegend(words.legend, drawing.width, measure)
  const rows = legend.length === 0 ? 0 : (legend.at(-1)?.row ?? 0) + 1
  const head = TITLE_PX + (words.subtitle === undefined ? 0 : LINE_PX) + rows * LINE_PX + 6
  canvas.width = (drawing.width + 2 * MARGIN) * PIXEL_RATIO
  canvas.height = (head + drawing.height + 2 * MARGIN) * PIXEL_RATIO
  pen.scale(PIXEL_RATIO, PIXEL_RATIO)
  pen.fillStyle = palette.surface
  pen.fillRect(0, 0, canvas.width, canvas.height)
  pen.textBaseline = 'middle'
  pen.font = TITLE_FONT
  pen.fillStyle = palette.ink
  pen.fillText(fitText(words.title, drawing.width, measure), MARGIN, MARGIN + TITLE_PX / 2)
  pen.font = TEXT_FONT
  let top = MARGIN + TITLE_PX
  if (words.subtitle !== undefined) {
    pen.fillStyle = palette.inkFaint
    pen.fillText(fitText(words.subtitle, drawing.width, measure), MARGIN, top + LINE_PX / 2)
    top += LINE_PX
  }
  for (const item of legend) drawItem(pen, item, top, palette.inkMuted)
  pen.drawImage(image, MARGIN, MARGIN + head, drawing.width, drawing.height)
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => {
      if (blob === null) reject(new Error('this picture is too large for the browser'))
      else resolve(blob)
    }, 'image/png')
  })
}

/** What a style sheet says of a shape, which a file of its own would not have. */
const DRAWN_STYLES = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'opacity',
  'font-size',
  'font-weight',
  'font-family',
  'paint-order',
] as const

/** An SVG of the page as a drawing. */
export function drawingOf(svg: SVGSVGElement): Drawing {
  const copy = svg.cloneNode(true) as SVGSVGElement
  const styled = [...copy.querySelectorAll<SVGElement>('*')]
  for (const [index, shape] of [...svg.querySelectorAll<SVGElement>('*')].entries()) {
    const style = getComputedStyle(shape)
    for (const name of DRAWN_STYLES) styled[index]?.style.setProperty(name, style.getPropertyValue(name))
  }
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  const url = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`
  return { url, width: svg.width.baseVal.value, height: svg.height.baseVal.value }
}
