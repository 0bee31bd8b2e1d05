/* Devices. */
#include "check.h"

int main(void)
{
    CUdevice device, again;
    char name[64], bus[16], small[4];
    CUuuid a, b, old;
    size_t bytes;
    int value, major, minor;

    OK(cuInit(0));
    OK(cuDeviceGet(&device, 1));
    TRUE(device == 1);
    EXPECT(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetName(name, sizeof name, 1));
    TRUE(!strcmp(name, "Test device 1"));
    OK(cuDeviceGetName(name, 5, 1));
    TRUE(!strcmp(name, "Test"));
    EXPECT(cuDeviceGetName(name, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetName(name, 5, 7), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceGetUuid(&a, 0));
    OK(cuDeviceGetUuid(&b, 1));
    TRUE(memcmp(&a, &b, sizeof a));
    OK((cuDeviceGetUuid_v2)(&old, 0));
    TRUE(!memcmp(&a, &old, sizeof a));
    OK(cuDeviceTotalMem(&bytes, 0));
    TRUE(bytes == 1u << 30);
    OK(cuDeviceComputeCapability(&major, &minor, 0));
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    TRUE(value == major);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    TRUE(value == minor);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
    TRUE(value == 1024);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    TRUE(value == 4);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    TRUE(value == 32);
    EXPECT(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetAttribute(&value, (CUdevice_attribute)-1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 2), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceGetPCIBusId(bus, sizeof bus, 1));
    TRUE(!strcmp(bus, "0001:ab:01.0"));
    EXPECT(cuDeviceGetPCIBusId(small, sizeof small, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetByPCIBusId(&again, bus));
    TRUE(again == 1);
    OK(cuDeviceGetByPCIBusId(&again, "0001:AB:00"));
    TRUE(again == 0);
    EXPECT(cuDeviceGetByPCIBusId(&again, "0009:ab:00.0"), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGetByPCIBusId(&again, "nonsense"), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceCanAccessPeer(&value, 0, 1));
    TRUE(value == 0);
    EXPECT(cuDeviceGetLuid(name, NULL, 0), CUDA_ERROR_NOT_SUPPORTED);
    return 0;
}
