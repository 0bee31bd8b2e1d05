// Floating point: what is exact with --fmad=false, and what libdevice's functions give.
extern "C" __global__ void polynomials(const float *a, const double *b, float *f, double *d, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    float x = a[t], p = 0;
    double y = b[t], q = 0;
    for (int i = 0; i <= 7; i++) { p = p * x + (float)(i - 3) * 0.37f; q = q * y + (double)(i - 3) * 0.37; }
    f[2 * t] = p; f[2 * t + 1] = x / (p + 1.5f); d[2 * t] = q; d[2 * t + 1] = sqrt(fabs(q)) / y;
}

extern "C" __global__ void nbody(const float4 *in, float4 *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    float4 me = in[t];
    float ax = 0, ay = 0, az = 0;
    for (int j = 0; j < n; j++) {
        float4 o = in[j];
        float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
        float r2 = dx * dx + dy * dy + dz * dz + 0.01f;
        float r = sqrtf(r2), s = o.w / (r2 * r);
        ax += dx * s; ay += dy * s; az += dz * s;
    }
    out[t] = make_float4(ax, ay, az, me.w);
}

extern "C" __global__ void mandelbrot(int *out, int width, int height, int most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    double cr = -2.0 + 3.0 * x / width, ci = -1.0 + 2.0 * y / height, zr = 0, zi = 0;
    int i = 0;
    while (i < most && zr * zr + zi * zi <= 4.0) { double t = zr * zr - zi * zi + cr; zi = 2 * zr * zi + ci; zr = t; i++; }
    out[y * width + x] = i;
}

extern "C" __global__ void casts(const float *a, const double *b, long long *out, float *f, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    float x = a[t];
    double y = b[t];
    long long *o = out + 10 * t;
    o[0] = (int)x; o[1] = (long long)x; o[2] = __float2int_rn(x); o[3] = __float2int_ru(x); o[4] = __double2ll_rd(y);
    o[5] = (unsigned)fabsf(x); o[6] = (short)(int)y; o[7] = __float_as_int(x); o[8] = __double_as_longlong(y); o[9] = llrint(y);
    f[4 * t] = (float)y; f[4 * t + 1] = __double2float_rz(y); f[4 * t + 2] = (float)(long long)y; f[4 * t + 3] = __int2float_ru((int)y);
}

extern "C" __global__ void rounded(const float *a, const float *b, float *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    float x = a[t], y = b[t], *o = out + 10 * t;
    o[0] = __fadd_ru(x, y); o[1] = __fmul_rd(x, y); o[2] = __fdiv_rz(x, y); o[3] = __fsqrt_ru(fabsf(x)); o[4] = __frcp_rd(y);
    o[5] = __fmaf_rz(x, y, x); o[6] = floorf(x); o[7] = rintf(y); o[8] = fmodf(x, y); o[9] = __saturatef(x);
}

extern "C" __global__ void functions(const double *a, double *out, float *f, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    double x = a[t], *o = out + 10 * t;
    o[0] = sqrt(x); o[1] = exp(x); o[2] = sin(x); o[3] = pow(x, 1.7); o[4] = log(x); o[5] = cos(x * 1000);
    o[6] = atan2(x, 2.0 - x); o[7] = cbrt(x); o[8] = tgamma(x * 0.3 + 1); o[9] = erf(x * 0.2);
    float z = (float)x;
    float *g = f + 6 * t;
    g[0] = sinf(z); g[1] = expf(z); g[2] = logf(z); g[3] = powf(z, 1.7f); g[4] = tanhf(z); g[5] = cosf(z * 50000.0f);
}
