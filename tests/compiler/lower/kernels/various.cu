// Kernels of everyday shapes for test_cuda.py.

extern "C" {
__global__ void ids_of_warp(int *o) {
    int l = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int n = blockDim.x * blockDim.y * blockDim.z;
    int b = blockIdx.x + gridDim.x * blockIdx.y;
    int s = __shfl_xor_sync(~0u, l, 0);
    int *p = o + (b * n + l) * 6;
    p[0] = threadIdx.x;
    p[1] = threadIdx.y;
    p[2] = threadIdx.z;
    p[3] = s;
    p[4] = blockDim.y;
    p[5] = l & 31;
}

__global__ void ids(int *o) {
    int l = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int n = blockDim.x * blockDim.y * blockDim.z;
    int b = blockIdx.x + gridDim.x * blockIdx.y;
    int *p = o + (b * n + l) * 6;
    p[0] = threadIdx.x;
    p[1] = threadIdx.y;
    p[2] = threadIdx.z;
    p[3] = blockIdx.x;
    p[4] = blockIdx.y;
    p[5] = gridDim.y;
}

__global__ void early(const int *a, int *o, int n) {
    __shared__ int s[256];
    int t = threadIdx.x;
    if (t >= n)
        return;
    s[t] = a[t];
    __syncthreads();
    o[t] = s[n - 1 - t];
}

__global__ void early_twice(const int *a, int *o, int n) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = 0;
    if (t % 3 == 1)
        return;
    s[t] = a[t];
    __syncthreads();
    int v = 0;
    for (int i = 0; i < n; i++)
        v += s[i];
    __syncthreads();
    if (t % 3 == 2)
        return;
    s[t] = v;
    __syncthreads();
    o[t] = s[(t + 3) % n / 3 * 3];
}
}

__device__ __noinline__ int sumgen(const int *p, int n, int st) {
    int s = 0;
    for (int i = 0; i < n; i++)
        s += p[i * st];
    return s;
}

__device__ __noinline__ void fillgen(int *p, int n, int v) {
    for (int i = 0; i < n; i++)
        p[i] = v + i;
}

__device__ int gv[64];
__device__ int *gpp[4];
__constant__ int cv[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
extern "C" {
__global__ void spaces(const int *a, int *o) {
    __shared__ int s[32];
    extern __shared__ int dyn[];
    int loc[8];
    int t = threadIdx.x;
    s[t] = a[t] * 2;
    dyn[t] = a[t] * 3;
    fillgen(loc, 8, t);
    gv[t] = t * t;
    __syncthreads();
    o[t * 8 + 0] = sumgen(s, 32, 1);
    o[t * 8 + 1] = sumgen(dyn, 16, 2);
    o[t * 8 + 2] = sumgen(loc, 8, 1);
    o[t * 8 + 3] = sumgen(gv, 32, 1);
    o[t * 8 + 4] = sumgen(cv, 16, 1);
    o[t * 8 + 5] = sumgen(a, 4, 3);
    int *q = t & 1 ? s : (int *)a;
    o[t * 8 + 6] = q[3];
    gpp[t & 3] = (t & 2) ? &s[t & 3] : gv + t;
    __syncthreads();
    o[t * 8 + 7] = *gpp[3];
}

__global__ void pointers(float **pp, float *o, int n) {
    int t = threadIdx.x;
    float s = 0;
    for (int i = 0; i < n; i++) {
        float *p = pp[i];
        s += p[t];
        p[t] = s;
    }
    o[t] = s;
}

__global__ void walk(const char *p, int *o, int n, int st) {
    int t = threadIdx.x;
    const char *q = p + t;
    const char *e = p + n;
    int s = 0;
    while (q < e) {
        s = s * 31 + *q;
        q += st;
    }
    o[t] = s;
    o[32 + t] = (int)(q - p);
}

__global__ void walk_back(const unsigned short *p, unsigned *o, long long n) {
    int t = threadIdx.x;
    const unsigned short *q = p + n - 1 - t;
    unsigned s = 0;
    while (q >= p) {
        s += *q;
        q -= 32;
    }
    o[t] = s;
}

__global__ void reverse(int *a, int n) {
    int t = threadIdx.x;
    int *l = a + t;
    int *r = a + n - 1 - t;
    if (l < r) {
        int x = *l;
        *l = *r;
        *r = x;
    }
}

struct Big {
    int a[40];
    short b[7];
    double d;
    float *p;
};

__global__ void big(Big s, int *o) {
    int t = threadIdx.x;
    int v = 0;
    for (int i = 0; i < 40; i++)
        v += s.a[(i * t) % 40];
    o[t] = v + s.b[t % 7] + (int)s.d + (int)s.p[t];
}

__global__ void switches(const int *a, int *o) {
    int t = threadIdx.x;
    int v = a[t], r;
    switch (v) {
    case 0:
        r = v + 10;
        break;
    case 1:
        r = v * 77;
        break;
    case 2:
        r = v - 1000;
        break;
    case 3:
        r = v << 5;
        break;
    case 4:
        r = ~v;
        break;
    case 5:
        r = v * v * v;
        break;
    case 6:
        r = v ^ 0x55;
        break;
    case 7:
        r = 1;
        o[t + 64] = 5;
        break;
    case 8:
        r = 8 / (v - 6);
        break;
    case 9:
        r = -v;
        break;
    default:
        r = -99;
    }
    o[t] = r;
}

struct V3 {
    float x, y, z;
};
}

__device__ __noinline__ V3 cross(V3 a, V3 b) {
    V3 r;
    r.x = a.y * b.z - a.z * b.y;
    r.y = a.z * b.x - a.x * b.z;
    r.z = a.x * b.y - a.y * b.x;
    return r;
}

__device__ __noinline__ int ack(int m, int n) {
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ack(m - 1, 1);
    return ack(m - 1, ack(m, n - 1));
}

__device__ __noinline__ long long mix(char a, short b, int c, long long d, float e, double f, bool g,
                                      unsigned char *h) {
    *h = a + b;
    return a * 3 + b * 5 + c * 7 + d * 11 + (long long)e + (long long)f + (g ? 1000 : 0);
}

extern "C" {
__global__ void crosses(const V3 *a, const V3 *b, V3 *o) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    o[t] = cross(a[t], b[t]);
}

__global__ void ackermann(int *o) {
    int t = threadIdx.x;
    o[t] = ack(t % 3, t % 4);
}

__global__ void mixes(long long *o, unsigned char *h) {
    int t = threadIdx.x;
    o[t] = mix(t - 16, t * 3 - 50, t * 1000, (long long)t << 33, t * 1.5f, t * 2.25, t & 1, h + t);
}

__global__ void vectors(const float4 *a, float4 *o, const double2 *d, double2 *od, const uchar4 *u, uchar4 *ou) {
    int t = threadIdx.x;
    float4 v = a[t];
    v.x += 1;
    v.y *= 2;
    v.z -= 3;
    v.w = -v.w;
    o[t] = v;
    double2 e = d[t];
    e.x *= e.y;
    od[t] = e;
    uchar4 c = u[t];
    c.x += c.y;
    c.w = 7;
    ou[t] = c;
}

__global__ void shared_mix(int *o) {
    __shared__ __align__(16) char buf[1024];
    int t = threadIdx.x;
    unsigned base = (unsigned)__cvta_generic_to_shared(buf);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + t * 4), "r"(t * 7));
    __syncthreads();
    int *q = (int *)buf;
    o[t] = q[(t + 1) & 31];
    int r;
    asm volatile("{ .reg .u32 a; add.u32 a, %1, 8; ld.shared.u32 %0, [a+4]; }" : "=r"(r) : "r"(base + (t & 15) * 4));
    o[32 + t] = r;
    __syncthreads();
    short *h = (short *)(buf + 512);
    h[t] = -t;
    ((volatile unsigned char *)buf)[700 + t] = t * 9;
    __syncthreads();
    o[64 + t] = h[31 - t];
    o[96 + t] = buf[700 + (t ^ 1)];
    unsigned long long g = (unsigned long long)buf;
    o[128 + t] = ((int *)(g + (t & 7) * 4))[2];
}

__global__ void histogram(const unsigned char *d, unsigned *o, int n) {
    __shared__ unsigned h[64];
    int t = threadIdx.x;
    h[t] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&h[d[i] & 63], 1);
    __syncthreads();
    atomicAdd(&o[t], h[t]);
}

__global__ void scan(const int *a, int *o) {
    __shared__ int s[2][128];
    int t = threadIdx.x, p = 0;
    s[0][t] = a[blockIdx.x * 128 + t];
    __syncthreads();
    for (int d = 1; d < 128; d <<= 1) {
        int v = s[p][t];
        if (t >= d)
            v += s[p][t - d];
        s[1 - p][t] = v;
        p = 1 - p;
        __syncthreads();
    }
    o[blockIdx.x * 128 + t] = s[p][t];
}

__global__ void transpose(const float *a, float *o, int w, int h) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < w && y + j < h)
            tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * w + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < h && y + j < w)
            o[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void nested(const int *a, int *o, int n) {
    int t = threadIdx.x;
    int s = 0;
    for (int i = 0; i < n; i++) {
        int v = a[(t * 7 + i) % n];
        if (v < 0)
            continue;
        if (v > 90)
            break;
        for (int j = v; j > 0; j /= 2) {
            if (j & 1)
                s += j;
            else if (j % 3 == 0) {
                s ^= j;
                goto next;
            }
        }
        s *= 3;
    next:;
    }
    o[t] = s;
}

__global__ void matvec(const float *__restrict__ A, const float *__restrict__ x, float *y, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n)
        return;
    float s = 0;
    const float *p = A + (size_t)r * n;
    for (int i = 0; i < n; i++)
        s += p[i] * x[i];
    y[r] = s;
}

__global__ void traps(int *o, int n) {
    if (n > 5)
        asm volatile("trap;");
    o[threadIdx.x] = n;
}

__global__ void early_loop(const int *a, const int *rounds, int *o, int n) {
    __shared__ int s[128];
    __shared__ int total;
    int t = threadIdx.x;
    if (t >= n) {
        o[t] = -t;
        return;
    }
    int v = a[t];
    int k = *rounds;
    s[t] = 0;
    __syncthreads();
    for (int r = 0; r < k; r++) {
        s[t] = 0;
        __syncthreads();
        if (v % 7 == r) {
            o[t] = 1000 + r;
            return;
        }
        s[t] = v;
        if (t == 0)
            total = 0;
        __syncthreads();
        int sum = 0;
        for (int i = 0; i < n; i++)
            sum += s[i];
        __syncthreads();
        v = sum % 100 + t;
    }
    o[t] = v;
}
}
