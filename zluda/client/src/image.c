/* What an image is, and how long: nobody tells its size, so it is read from the image, which may be garbage. */
#include "client.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Bytes from `start`; `known` of them are there, or as many as are mapped. */
struct bytes {
    const uint8_t *start;
    size_t known;
};
#define NOBODY_KNOWS SIZE_MAX

/* Whether every page of a range can be read: asked of the system, which answers instead of ending the program. */
static bool readable(const uint8_t *start, size_t size)
{
    enum { BATCH = 512 };
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t last = (uintptr_t)start + size - 1;
    uintptr_t at = (uintptr_t)start;
    struct iovec from[BATCH], to;
    uint8_t scratch[BATCH];
    size_t count;

    if (!size)
        return true;
    if (!start || last < at)
        return false;
    do {
        for (count = 0; count < BATCH && at <= last && at >= (uintptr_t)start; count++) {
            from[count] = (struct iovec){(void *)at, 1};
            at = (at | (page - 1)) + 1;
        }
        to = (struct iovec){scratch, count};
        errno = 0;
        if (process_vm_readv(getpid(), &to, 1, from, count, 0) != (ssize_t)count && (!errno || errno == EFAULT))
            return false;                /* any other error: the system does not let us ask */
    } while (at <= last && at >= (uintptr_t)start);
    return true;
}

static bool has(const struct bytes *bytes, uint64_t offset, uint64_t size)
{
    uint64_t end;

    if (__builtin_add_overflow(offset, size, &end))
        return false;
    return bytes->known == NOBODY_KNOWS ? readable(bytes->start + offset, size) : end <= bytes->known;
}

static uint64_t word(const uint8_t *from, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, from, size);          /* little-endian, as everything here */
    return value;
}

/* The end of the table at `offset` if it is there and lies in the image, else 0. */
static uint64_t table_end(const struct bytes *elf, uint64_t offset, uint64_t entry, uint64_t entries)
{
    return has(elf, offset, entry * entries) ? offset + entry * entries : 0;
}

/* 0 if the file does not hang together. */
static size_t elf_size(const struct bytes *elf)
{
    enum { HEADER = 64, SECTION = 64, NO_BITS = 8, CLASS_64 = 2 };
    const uint8_t *head = elf->start;
    uint64_t sections, segments, section_size, section_count, segment_size, segment_count, largest = HEADER, end;

    if (!has(elf, 0, HEADER))
        return 0;
    if (head[4] != CLASS_64)             /* the driver process says what is wrong with it */
        return HEADER;
    sections = word(head + 0x28, 8), section_size = word(head + 0x3A, 2), section_count = word(head + 0x3C, 2);
    segments = word(head + 0x20, 8), segment_size = word(head + 0x36, 2), segment_count = word(head + 0x38, 2);
    if (section_count) {
        end = section_size >= SECTION ? table_end(elf, sections, section_size, section_count) : 0;
        if (!end)
            return 0;
        largest = end > largest ? end : largest;
    }
    if (segment_count) {
        end = table_end(elf, segments, segment_size, segment_count);
        if (!end)
            return 0;
        largest = end > largest ? end : largest;
    }
    for (uint64_t i = 0; i < section_count; i++) {
        const uint8_t *section = head + sections + i * section_size;
        if (word(section + 4, 4) == NO_BITS)
            continue;
        if (__builtin_add_overflow(word(section + 0x18, 8), word(section + 0x20, 8), &end))
            return 0;
        largest = end > largest ? end : largest;
    }
    return has(elf, 0, largest) ? largest : 0;
}

static size_t fatbin_size(const struct bytes *fatbin)
{
    uint64_t size;

    if (!has(fatbin, 0, 16) || __builtin_add_overflow(word(fatbin->start + 6, 2), word(fatbin->start + 8, 8), &size))
        return 0;
    return size >= 16 && has(fatbin, 0, size) ? size : 0;
}

/* An image may be shorter than a magic number (an empty text), and none of those holds a NUL. */
static bool begins(const uint8_t *image, const char *magic)
{
    return strncmp((const char *)image, magic, 4) == 0;
}

CUresult zl_image_size(const void *image, size_t known, const void **start, size_t *size)
{
    struct bytes bytes = {image, known ? known : NOBODY_KNOWS};

    if (begins(bytes.start, "\xB1\x43\x62\x46")) { /* the wrapper that nvcc leaves around a fat binary, in memory */
        if (known || !has(&bytes, 0, 24))
            return CUDA_ERROR_INVALID_IMAGE;
        if (word(bytes.start + 4, 4) != 1)
            return CUDA_ERROR_INVALID_IMAGE;
        bytes.start = (const uint8_t *)(uintptr_t)word(bytes.start + 8, 8);
        if (!has(&bytes, 0, 16))
            return CUDA_ERROR_INVALID_IMAGE;
    }
    *start = bytes.start;
    if (begins(bytes.start, "\x50\xED\x55\xBA"))
        *size = fatbin_size(&bytes);
    else if (begins(bytes.start, "\177ELF"))
        *size = elf_size(&bytes);
    else
        *size = strlen((const char *)bytes.start);
    return *size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

/* The wrapper's version 2 stands for relocatable device code: behind it is an array of the fat binaries to be linked,
   which ends in a null pointer. They are put one behind the other, 8 bytes aligned. */
CUresult zl_image_gather(const void *image, void **gathered, size_t *size)
{
    const struct bytes wrapper = {image, NOBODY_KNOWS};
    struct bytes list = {NULL, NOBODY_KNOWS}, fatbin = {NULL, NOBODY_KNOWS};
    uint8_t *all = NULL, *grown;
    size_t total = 0, more;

    *gathered = NULL;
    if (!begins(image, "\xB1\x43\x62\x46") || !has(&wrapper, 0, 24) || word(wrapper.start + 4, 4) != 2)
        return CUDA_SUCCESS;             /* nothing to gather */
    list.start = (const uint8_t *)(uintptr_t)word(wrapper.start + 16, 8);
    for (size_t i = 0; list.start; i++) {
        if (!has(&list, i * 8, 8))
            break;
        fatbin.start = (const uint8_t *)(uintptr_t)word(list.start + i * 8, 8);
        if (!fatbin.start) {
            *gathered = all;
            *size = total;
            return all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
        }
        more = has(&fatbin, 0, 16) && begins(fatbin.start, "\x50\xED\x55\xBA") ? fatbin_size(&fatbin) : 0;
        if (!more)
            break;
        grown = realloc(all, (total + more + 7) / 8 * 8 + 64);
        if (!grown) {
            free(all);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        all = grown;
        memset(all + total, 0, (total + more + 7) / 8 * 8 + 64 - total);
        memcpy(all + total, fatbin.start, more);
        total = (total + more + 7) / 8 * 8;
    }
    free(all);
    return CUDA_ERROR_INVALID_IMAGE;
}

CUresult zl_file_read(const char *name, void **data, size_t *size)
{
    FILE *file = fopen(name, "rbe");
    long length;
    char *bytes = NULL;

    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) > 0 && length < LONG_MAX && fseek(file, 0, SEEK_SET) == 0 &&
        (bytes = calloc((size_t)length + 64, 1)) && fread(bytes, 1, (size_t)length, file) != (size_t)length) {
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    if (!bytes)
        return CUDA_ERROR_INVALID_IMAGE;
    *data = bytes;
    *size = (size_t)length;
    return CUDA_SUCCESS;
}
