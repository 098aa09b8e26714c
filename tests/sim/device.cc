#include "stagecraft/tests/sim/device.h"

#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "stagecraft/tests/sim/machine.h"

namespace stagecraft::sim {
namespace {

constexpr int kMostDevices = 16;

thread_local int current_device = 0;
thread_local std::array<std::int64_t, kMostDevices> current_streams{};

c10::Device device_of(int index) {
  return {kType, static_cast<c10::DeviceIndex>(index)};
}

int index_of(c10::Device device) {
  return device.has_index() ? device.index() : current_device;
}

c10::Stream stream_of(int device, std::int64_t number) {
  return c10::Stream(c10::Stream::UNSAFE, device_of(device), number);
}

Stream& stream_of(const c10::Stream& stream) {
  return Machine::the().stream(stream.device_index(), stream.id());
}

std::int64_t& current_stream(int device) {
  return current_streams.at(static_cast<std::size_t>(device));
}

struct Event {
  std::shared_ptr<Mark> mark;
};

const std::shared_ptr<Mark>& mark_of(void* event) {
  return static_cast<Event*>(event)->mark;
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = kType;

  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    return device_of(std::exchange(current_device, index_of(device)));
  }
  c10::Device getDevice() const override { return device_of(current_device); }
  void setDevice(c10::Device device) const override { current_device = index_of(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current_device = index_of(device);
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(Machine::the().devices());
  }

  c10::Stream getStream(c10::Device device) const override {
    return stream_of(index_of(device), current_stream(index_of(device)));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream_of(index_of(device), 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    const int index = index_of(device);
    return stream_of(index, Machine::the().next_stream(index, priority < 0).number);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high) const override {
    return getNewStream(device, high ? -1 : 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const int device = stream.device_index();
    return stream_of(device, std::exchange(current_stream(device), stream.id()));
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return &stream_of(stream);
  }
  bool queryStream(const c10::Stream& stream) const override {
    return Machine::the().is_idle(stream_of(stream));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    Machine::the().synchronize(stream_of(stream));
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    Machine::the().synchronize(device);
  }

  void record(void** event,
              const c10::Stream& stream,
              c10::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) {
      *event = new Event;
    }
    static_cast<Event*>(*event)->mark = Machine::the().record(stream_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) {
      Machine::the().wait(stream_of(stream), mark_of(event));
    }
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || Machine::the().is_done(*mark_of(event));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) {
      Machine::the().synchronize(*mark_of(event));
    }
  }
  double elapsedTime(void* from, void* to, c10::DeviceIndex /*device*/) const override {
    const std::chrono::duration<double, std::milli> time = mark_of(to)->time - mark_of(from)->time;
    return time.count();
  }
  void destroyEvent(void* event, c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    if (data.get() != nullptr) {
      Machine::the().use_on(data.get_context(), stream_of(stream));
    }
  }
};

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device = device_of(current_device);
    if (bytes == 0) {
      return {nullptr, device};
    }
    void* const data = Machine::the().allocate(
        stream_of(stream_of(current_device, current_stream(current_device))), bytes);
    return {on_device(data), data, [](void* freed) { Machine::the().free(freed); }, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/) const override {
    TORCH_CHECK(false, "memory of a simulated device is copied by kernels");
  }
  bool initialized() override { return Machine::the().devices() > 0; }
  void emptyCache(c10::MempoolId_t /*pool*/) override {}
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    Machine::the().use_on(data.get_context(), stream_of(stream));
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].current = Machine::the().bytes_in_use(device);
    stats.allocated_bytes[0].peak = Machine::the().peak_bytes(device);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex /*device*/) override {}
  void resetPeakStats(c10::DeviceIndex device) override { Machine::the().reset_peak(device); }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const std::size_t all = Machine::the().options().memory;
    return {all - static_cast<std::size_t>(Machine::the().bytes_in_use(device)), all};
  }
};

/// PinnedMemory is memory of the host that kernels may read while they run: they keep it.
class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) {
      return {nullptr, c10::kCPU};
    }
    TORCH_CHECK(Machine::the().options().has_pinned_memory, "there is no pinned memory left");
    constexpr std::align_val_t kAligned{64};
    void* const data = ::operator new(bytes, kAligned);
    const std::scoped_lock lock(mutex_);
    sizes_[data] = bytes;
    return {data, data, [](void* freed) { the().free(freed, kAligned); }, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  [[nodiscard]] bool has(const void* data) const {
    const std::scoped_lock lock(mutex_);
    const auto after = sizes_.upper_bound(data);
    if (after == sizes_.begin()) {
      return false;
    }
    const auto& [begin, bytes] = *std::prev(after);
    return data < static_cast<const std::byte*>(begin) + bytes;
  }
  static PinnedMemory& the() {
    static auto* const one = new PinnedMemory;
    return *one;
  }

 private:
  void free(void* data, std::align_val_t aligned) {
    const std::scoped_lock lock(mutex_);
    sizes_.erase(data);
    ::operator delete(data, aligned);
  }

  mutable std::mutex mutex_;
  std::map<const void*, std::size_t> sizes_;
};

/// Generator is a seed and an offset, as CUDA's: operators take their part when they are issued.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex device)
      : GeneratorImpl(c10::Device(kType, device),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(std::uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  void set_offset(std::uint64_t offset) override { offset_ = offset; }
  std::uint64_t get_offset() const override { return offset_; }
  std::uint64_t current_seed() const override { return seed_; }
  std::uint64_t seed() override {
    set_current_seed(std::random_device()());
    return seed_;
  }
  void set_state(const c10::TensorImpl& /*state*/) override {
    TORCH_CHECK(false, "the state of a simulated generator is its seed and its offset");
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    TORCH_CHECK(false, "the state of a simulated generator is its seed and its offset");
  }

 private:
  Generator* clone_impl() const override {
    auto* const copy = new Generator(device().index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }

  std::uint64_t seed_ = 1, offset_ = 0;
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return Machine::the().devices() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(Machine::the().devices());
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    static auto* const all = new std::array<at::Generator, kMostDevices>;
    const int index = device < 0 ? current_device : device;
    at::Generator& one = all->at(static_cast<std::size_t>(index));
    if (!one.defined()) {
      one = getNewGenerator(static_cast<c10::DeviceIndex>(index));
    }
    return one;
  }
  bool isPinnedPtr(const void* data) const override { return PinnedMemory::the().has(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &PinnedMemory::the(); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<Generator>(device);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    TORCH_CHECK(storage.nbytes() == 0, "a simulated tensor that has memory is not resized");
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(c10::GetAllocator(kType)->allocate(bytes));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

}  // namespace

void install(int devices) {
  Machine::the().start(devices);
  c10::register_privateuse1_backend("sim");
  c10::SetAllocator(kType, new Allocator);
  c10::impl::registerDeviceGuard(kType, new Guard);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
}

}  // namespace stagecraft::sim
