// Integer code with exact answers: hashes, big numbers, bit tricks, control flow.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

__constant__ u32 K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ __forceinline__ u32 rotr(u32 x, int n) { return (x >> n) | (x << (32 - n)); }

extern "C" __global__ void sha256_block(const u32 *in, u32 *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    u32 w[64], s[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    u32 h[8];
    for (int i = 0; i < 8; i++) h[i] = s[i];
    for (int i = 0; i < 16; i++) w[i] = __byte_perm(in[t * 16 + i], 0, 0x0123);
    for (int i = 16; i < 64; i++) {
        u32 a = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        u32 b = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    for (int i = 0; i < 64; i++) {
        u32 e = h[4], a = h[0];
        u32 t1 = h[7] + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & h[5]) ^ (~e & h[6])) + K[i] + w[i];
        u32 t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & h[1]) ^ (a & h[2]) ^ (h[1] & h[2]));
        for (int j = 7; j > 0; j--) h[j] = h[j - 1];
        h[4] += t1;
        h[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) out[t * 8 + i] = s[i] + h[i];
}

extern "C" __global__ void murmur3(const unsigned char *in, u32 *out, int length, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    const unsigned char *p = in + t * length;
    u32 h = (u32)t;
    int i;
    for (i = 0; i + 4 <= length; i += 4) {
        u32 k = p[i] | p[i + 1] << 8 | p[i + 2] << 16 | (u32)p[i + 3] << 24;
        k *= 0xcc9e2d51u;
        k = __funnelshift_l(k, k, 15);
        k *= 0x1b873593u;
        h ^= k;
        h = __funnelshift_l(h, h, 13);
        h = h * 5 + 0xe6546b64u;
    }
    u32 k = 0;
    switch (length & 3) {
    case 3: k ^= (u32)p[i + 2] << 16;
    case 2: k ^= (u32)p[i + 1] << 8;
    case 1: k ^= p[i]; k *= 0xcc9e2d51u; k = __funnelshift_l(k, k, 15); k *= 0x1b873593u; h ^= k;
    }
    h ^= (u32)length;
    h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; h *= 0xc2b2ae35u; h ^= h >> 16;
    out[t] = h;
}

__device__ u32 crc_table[256];
extern "C" __global__ void crc_make() {
    u32 c = threadIdx.x;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    crc_table[threadIdx.x] = c;
}
extern "C" __global__ void crc32(const signed char *in, u32 *out, int length, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    u32 c = ~0u;
    for (int i = 0; i < length; i++) c = crc_table[(c ^ in[t * length + i]) & 255] ^ (c >> 8);
    out[t] = ~c;
}

extern "C" __global__ void xorshift(u64 *state, u64 *out, int steps, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    u64 x = state[t], sum = 0;
    for (int i = 0; i <= steps; i++) {
        x ^= x >> 12; x ^= x << 25; x ^= x >> 27;
        sum += x * 2685821657736338717ull;
        sum ^= __umul64hi(x, 0x9e3779b97f4a7c15ull);
    }
    state[t] = x;
    out[t] = sum;
}

#define LIMBS 6
struct Big { u32 v[LIMBS]; };
__device__ __noinline__ void big_mul(const Big a, const Big b, u32 *out) {
    for (int i = 0; i < 2 * LIMBS; i++) out[i] = 0;
    for (int i = 0; i < LIMBS; i++) {
        u32 carry = 0;
        for (int j = 0; j < LIMBS; j++) {
            u64 s = (u64)a.v[i] * b.v[j] + out[i + j] + carry;
            out[i + j] = (u32)s;
            carry = (u32)(s >> 32);
        }
        out[i + LIMBS] = carry;
    }
}
extern "C" __global__ void bignum(const Big *a, Big b, u32 *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    u32 product[2 * LIMBS];
    big_mul(a[t], b, product);
    for (int i = 0; i < 2 * LIMBS; i++) out[t * 2 * LIMBS + i] = product[i];
}
extern "C" __global__ void carries(const u32 *a, const u32 *b, u32 *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    const u32 *x = a + 4 * t, *y = b + 4 * t;
    u32 r0, r1, r2, r3, r4, h0, h1;
    asm("add.cc.u32 %0,%5,%9; addc.cc.u32 %1,%6,%10; addc.cc.u32 %2,%7,%11; addc.cc.u32 %3,%8,%12; addc.u32 %4,0,0;"
        : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3), "=r"(r4)
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]));
    asm("mad.lo.cc.u32 %0,%2,%3,%4; madc.hi.u32 %1,%2,%3,%5;" : "=r"(h0), "=r"(h1) : "r"(x[0]), "r"(y[0]), "r"(x[1]), "r"(y[1]));
    u32 *o = out + 7 * t;
    o[0] = r0; o[1] = r1; o[2] = r2; o[3] = r3; o[4] = r4; o[5] = h0; o[6] = h1;
}

extern "C" __global__ void fixed_point(const int *a, const int *b, int *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int x = a[t], y = b[t];
    int product = (int)(((s64)x * y) >> 16);
    int quotient = y ? (int)(((s64)x << 16) / y) : 0;
    short s = (short)(x >> 8);
    out[4 * t] = product; out[4 * t + 1] = quotient; out[4 * t + 2] = __mulhi(x, y) + s; out[4 * t + 3] = __mul24(x, y);
}

extern "C" __global__ void bits(const u32 *a, const u32 *b, u32 *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    u32 x = a[t], y = b[t], *o = out + 16 * t;
    o[0] = __popc(x); o[1] = __clz(x); o[2] = __brev(x); o[3] = __byte_perm(x, y, y >> 7);
    o[4] = __funnelshift_l(x, y, y); o[5] = __funnelshift_rc(x, y, y & 63); o[6] = __umulhi(x, y); o[7] = (u32)__mulhi((int)x, (int)y);
    o[8] = __sad((int)x, (int)y, 7u); o[9] = __usad(x, y, 9u); o[10] = __ffs((int)x); o[11] = __clzll(((u64)x << 32 | y) >> (y & 31));
    o[12] = __popcll((u64)x * y); o[13] = (u32)(__brevll((u64)x << 32 | y) >> 16); o[14] = __uhadd(x, y); o[15] = (u32)__rhadd((int)x, (int)y);
}

#if __CUDA_ARCH__ >= 610 && !defined(__CUDACC_DEBUG__)   // NVRTC cannot compile __dp4a with -G
extern "C" __global__ void dots(const int *a, const int *b, int *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    out[2 * t] = __dp4a(a[t], b[t], 100);
    out[2 * t + 1] = (int)__dp4a((u32)a[t], (u32)b[t], 100u);
}
#endif

extern "C" __global__ void divisions(const s64 *a, const s64 *b, s64 *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    s64 x = a[t], y = b[t];
    s64 *o = out + 8 * t;
    o[0] = x / y; o[1] = x % y; o[2] = (s64)((u64)x / (u64)y); o[3] = (s64)((u64)x % (u64)y);
    int p = (int)x, q = (int)y | 1;
    o[4] = q == -1 ? 0 : p / q; o[5] = q == -1 ? 0 : p % q; o[6] = x / 1000003; o[7] = (s64)((u64)x % 4294967291ull);
}

__device__ __noinline__ int classify(int v) {
    switch (v & 15) {
    case 0: return v * 3;
    case 1: return v - 17;
    case 2: case 3: return v ^ 0x55;
    case 4: v += 4;
    case 5: return v << 2;
    case 7: { int s = 0; for (int i = 0; i <= (v >> 4 & 7); i++) { if (i == 5) continue; s += i * v; if (s > 100000) break; } return s; }
    case 9: return -v;
    case 12: return v / 12;
    default: return v < 0 ? -1 : 1;
    }
}
extern "C" __global__ void switches(const int *a, int *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int acc = 0;
    for (int i = 0; i <= t % 37; i++) acc = classify(acc + a[(t + i) % n]);
    out[t] = acc;
}

extern "C" __global__ void local_arrays(const int *a, int *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int heap[24];
    short small[10] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
    for (int i = 0; i < 24; i++) heap[i] = a[(t * 7 + i * 5) % n];
    for (int i = 1; i < 24; i++) {   // insertion sort
        int v = heap[i], j = i - 1;
        while (j >= 0 && heap[j] > v) { heap[j + 1] = heap[j]; j--; }
        heap[j + 1] = v;
    }
    small[t % 10] = (short)heap[0];
    out[3 * t] = heap[t % 24]; out[3 * t + 1] = heap[23]; out[3 * t + 2] = small[(t + (heap[3] & 1)) % 10];
}

struct Mixed { char c; short s; int i; s64 l; float f; double d; };
extern "C" __global__ void structs(Mixed m, Mixed *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    Mixed r = m;
    r.c = (char)(m.c + t); r.s = (short)(m.s * t); r.i -= t; r.l <<= t & 63; r.f += (float)t; r.d *= t;
    out[t] = r;
}

extern "C" __global__ void narrow(const signed char *a, const unsigned short *b, short *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    signed char x = a[t];
    unsigned short y = b[t];
    signed char s = x * 3;
    unsigned char u = (unsigned char)(y + x);
    out[4 * t] = s; out[4 * t + 1] = u; out[4 * t + 2] = (short)(x << 4) >> 2; out[4 * t + 3] = (short)(y / (unsigned short)(x | 1));
}
