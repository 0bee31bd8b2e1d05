// Threads together: warps, shared memory, atomics, blocks of all shapes.
typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ int linear() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
__device__ __forceinline__ int total() { return blockDim.x * blockDim.y * blockDim.z; }
__device__ __forceinline__ u32 lanes() {
    int rest = total() - (linear() & ~31);
    return rest >= 32 ? ~0u : (1u << rest) - 1;
}
__device__ __forceinline__ int block() { return blockIdx.x + gridDim.x * blockIdx.y; }

// Every thread reduces and scans over its warp; the last warp may be partial.
extern "C" __global__ void warp_sums(const int *in, int *out) {
    int t = linear(), n = total(), lane = t & 31;
    u32 members = lanes();
    int here = __popc(members);
    int v = in[block() * n + t], scan = v, most = v, x = v;
    for (int d = 1; d < 32; d *= 2) {
        int u = __shfl_up_sync(members, scan, d);
        if (lane >= d) scan += u;
        int w = __shfl_xor_sync(members, most, d);
        if ((lane ^ d) < here && w > most) most = w;
    }
    int last = __shfl_sync(members, scan, here - 1);
    x = __shfl_down_sync(members, v, 1, 8);
    int *o = out + 6 * (block() * n + t);
    o[0] = scan; o[1] = most; o[2] = last; o[3] = (lane & 7) < 7 && lane + 1 < here ? x : 0;
    o[4] = __ballot_sync(members, v & 1); o[5] = __any_sync(members, v > 90) * 2 + __all_sync(members, v > -90);
}

// A block-wide inclusive scan in dynamic shared memory, threads beyond `n` return before the first barrier.
extern __shared__ int dynamic[];
extern "C" __global__ void block_scan(const int *in, int *out, int n) {
    int t = linear();
    int size = min(n, total());
    int b = block();
    if (t >= n) return;
    int *a = dynamic, *c = dynamic + size;
    a[t] = in[b * size + t];
    __syncthreads();
    for (int d = 1; d < size; d *= 2) {
        c[t] = t >= d ? a[t] + a[t - d] : a[t];
        __syncthreads();
        int *swap = a; a = c; c = swap;
    }
    out[b * size + t] = a[t];
}

extern "C" __global__ void block_reduce(const int *in, int *out) {
    __shared__ int parts[32];
    int t = linear(), n = total(), lane = t & 31, warp = t >> 5, warps = (n + 31) / 32;
    int v = in[block() * n + t];
    u32 members = n - warp * 32 >= 32 ? ~0u : (1u << (n - warp * 32)) - 1;
    for (int d = 16; d; d >>= 1) {
        int u = __shfl_down_sync(members, v, d);
        if (members >> (lane + d) & 1 && lane + d < 32) v += u;
    }
    if (lane == 0) parts[warp] = v;
    __syncthreads();
    if (t == 0) {
        int s = 0;
        for (int i = 0; i < warps; i++) s += parts[i];
        out[block()] = s;
    }
}

extern "C" __global__ void histogram(const unsigned char *in, u32 *out, int n) {
    __shared__ u32 bins[64];
    int t = linear(), size = total();
    for (int i = t; i < 64; i += size) bins[i] = 0;
    __syncthreads();
    for (int i = block() * size + t; i < n; i += size * gridDim.x * gridDim.y) atomicAdd(&bins[in[i] & 63], 1u);
    __syncthreads();
    for (int i = t; i < 64; i += size) if (bins[i]) atomicAdd(&out[i], bins[i]);
}

extern "C" __global__ void atomics(int *o, u64 *wide, float *f, double *d) {
    int t = linear() + total() * block();
    atomicAdd(o, t); atomicMax(o + 1, t * 7 % 101 - 50); atomicMin(o + 2, t * 7 % 101 - 50);
    atomicMax((u32 *)o + 3, (u32)(t * 7 % 101 - 50)); atomicAnd(o + 4, ~(1 << (t & 15))); atomicOr(o + 5, 1 << (t & 31)); atomicXor(o + 6, t);
    atomicInc((u32 *)o + 7, 9); atomicDec((u32 *)o + 8, 9); atomicSub(o + 9, 3);
    int old, seen = *(volatile int *)(o + 10);   // CAS loop
    do { old = seen; seen = atomicCAS(o + 10, old, old + 2 * t + 1); } while (seen != old);
    atomicAdd(wide, (u64)t << 32 | 1); atomicMax(wide + 1, (u64)t << 33);
    atomicAdd(f, (float)t); atomicAdd(d, 0.5 * t);
}

extern "C" __global__ void transpose(const double *in, double *out, int width, int height) {
    __shared__ double tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x; y = blockIdx.x * 16 + threadIdx.y;
    if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

// Loops of a different length for each thread around a barrier that all reach, then a divergent tail.
extern "C" __global__ void uneven(int *out, int rounds) {
    __shared__ int cells[1024];
    int t = linear(), n = total(), acc = 0;
    cells[t] = t;
    __syncthreads();
    for (int r = 0; r <= rounds; r++) {
        int v = 0;
        for (int i = 0; i <= (t + r) % 5; i++) v += cells[(t + i) % n];
        __syncthreads();
        cells[t] = v & 0xffff;
        __syncthreads();
        acc ^= v;
    }
    if (t % 3 == 0) { out[block() * n + t] = acc; return; }
    for (int i = 0; i <= t % 7; i++) acc = acc * 31 + i;
    out[block() * n + t] = acc;
}

__device__ __noinline__ int lane_sum(int v, u32 members) {
    int s = 0;
    for (int i = 0; i < 32; i++) if (members >> i & 1) s += __shfl_sync(members, v, i);
    return s;
}
extern "C" __global__ void divergent(int *out) {
    int t = linear(), n = total(), r;
    if (t & 1) {
        u32 m = lanes() & 0xaaaaaaaau;
        r = lane_sum(t, m);
    } else {
        u32 m = lanes() & 0x55555555u;
        r = -__popc(__ballot_sync(m, t % 3 == 0));
    }
    __syncwarp();
    out[block() * n + t] = r;
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void redux(const int *in, int *out) {
    int t = linear(), n = total();
    u32 m = n - (t & ~31) >= 32 ? ~0u : (1u << (n - (t & ~31))) - 1;
    int v = in[t], *o = out + 6 * t;
    o[0] = __reduce_add_sync(m, v); o[1] = __reduce_min_sync(m, v); o[2] = __reduce_max_sync(m, v);
    o[3] = (int)__reduce_max_sync(m, (u32)v); o[4] = (int)__reduce_xor_sync(m, (u32)v); o[5] = (int)__match_any_sync(m, v & 3);
}
#endif
