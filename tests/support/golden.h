/*
 * Golden figures (tests/golden/NAME.svg), compared by structure: outlines of glyphs and embedded
 * image data are left out, since they belong to the installed font and zlib; everything else
 * (rectangles, colours, text positions) must agree, numbers to 0.1. The committed files are whole
 * SVGs, to be opened and looked at. QKV_UPDATE_GOLDEN=1 writes them anew.
 */
#ifndef QKV_TESTS_SUPPORT_GOLDEN_H
#define QKV_TESTS_SUPPORT_GOLDEN_H

/* Whether text is drawn with the font that the golden figures were measured with. */
int golden_font(void);

/* Compares the SVG at `drawn` with tests/golden/NAME, or puts it there. */
void check_golden_at(const char *directory, const char *drawn, const char *name);
#define check_golden_svg(drawn, name) check_golden_at(QKV_TEST_SOURCE_DIR, drawn, name)

#endif
