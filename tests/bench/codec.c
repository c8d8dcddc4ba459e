/* Compresses each page of a file by itself, and decompresses it: codec FILE prints a line for each algorithm, with the processor time of a
 * page out and in, in nanoseconds, and the pages that fit into one. `tests/bench/choice` compiles and runs it.
 *
 * The algorithms are those of the libraries, which are the sources of the kernel's. A compressed page takes a multiple of 16 bytes as in
 * zsmalloc, and more than 3264 bytes take a whole page. The time of a page is the least of the rounds, because other programs only add to it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <lz4.h>
#include <lzo/lzo1x.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <zstd.h>

enum { PAGE = 4096, HUGE_CLASS = 3264, ROUNDS = 5, ROOM = 2 * PAGE };

static char work[LZO1X_1_MEM_COMPRESS], state[16384 + 64];
static ZSTD_CCtx *packer;
static ZSTD_DCtx *unpacker;

static size_t lz4_out(const char *page, char *to) { return LZ4_compress_fast_extState(state, page, to, PAGE, ROOM, 1); }
static size_t lz4_in(const char *from, size_t length, char *page) { return LZ4_decompress_safe(from, page, length, PAGE); }
static size_t lzo_out(const char *page, char *to)
{
	lzo_uint length = ROOM;
	lzo1x_1_compress((const lzo_bytep)page, PAGE, (lzo_bytep)to, &length, work);
	return length;
}
static size_t lzo_in(const char *from, size_t length, char *page)
{
	lzo_uint size = PAGE;
	lzo1x_decompress_safe((const lzo_bytep)from, length, (lzo_bytep)page, &size, NULL);
	return size;
}
static size_t zstd_3(const char *page, char *to) { return ZSTD_compressCCtx(packer, to, ROOM, page, PAGE, 3); }
static size_t zstd_1(const char *page, char *to) { return ZSTD_compressCCtx(packer, to, ROOM, page, PAGE, 1); }
static size_t zstd_in(const char *from, size_t length, char *page) { return ZSTD_decompressDCtx(unpacker, page, PAGE, from, length); }

static const struct {
	const char *name;
	size_t (*out)(const char *, char *);
	size_t (*in)(const char *, size_t, char *);
} algorithms[] = {
	{"lz4", lz4_out, lz4_in}, {"lzo", lzo_out, lzo_in}, {"zstd", zstd_3, zstd_in}, {"zstd(level=1)", zstd_1, zstd_in},
};

static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(int argc, char **argv)
{
	struct stat file;
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	if (fd < 0 || fstat(fd, &file)) {
		fprintf(stderr, "usage: codec FILE\n");
		return 2;
	}
	const char *data = mmap(NULL, file.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED || lzo_init() != LZO_E_OK)
		return 1;
	packer = ZSTD_createCCtx();
	unpacker = ZSTD_createDCtx();
	long clock = now();
	for (int i = 0; i < 1000; i++)
		now();
	clock = (now() - clock) / 1000;
	for (size_t which = 0; which < sizeof algorithms / sizeof *algorithms; which++) {
		double out = 0, in = 0, memory = 0;
		long pages = 0;
		for (off_t at = 0; at + PAGE <= file.st_size; at += PAGE) {
			static char packed[ROOM], page[PAGE];
			if (!memcmp(data + at, data + at + 8, PAGE - 8))
				continue; /* The same word throughout: zram does not compress it. */
			long least_out = 1L << 40, least_in = 1L << 40;
			size_t length = 0;
			for (int round = 0; round < ROUNDS; round++) {
				long begun = now();
				length = algorithms[which].out(data + at, packed);
				long between = now();
				size_t size = algorithms[which].in(packed, length, page);
				long end = now();
				if (size != PAGE || memcmp(page, data + at, PAGE)) {
					fprintf(stderr, "%s: a page came back changed\n", algorithms[which].name);
					return 1;
				}
				least_out = between - begun < least_out ? between - begun : least_out;
				least_in = end - between < least_in ? end - between : least_in;
			}
			out += least_out - clock;
			in += least_in - clock;
			memory += length > HUGE_CLASS ? PAGE : (length + 15) / 16 * 16;
			pages++;
		}
		printf("%s\t%.0f\t%.0f\t%.3f\n", algorithms[which].name, out / pages, in / pages, pages * (double)PAGE / memory);
	}
	return 0;
}
