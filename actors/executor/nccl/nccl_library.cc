#include "stagecraft/actors/executor/nccl/nccl_library.h"

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

// NCCL's binary interface (nccl.h, the same since 2.22), without its header.

extern "C" {

struct ncclComm;  // NOLINT(readability-identifier-naming): NCCL's own name

/// By value, as NCCL takes it.
struct NcclUniqueId {
  char bytes[128];  // NOLINT(modernize-avoid-c-arrays)
};

/// The members that NCCL reads for `version`; 2.26 reads the last one for any. `size` says how many
/// there are.
struct NcclConfig {
  std::size_t size;
  unsigned magic, version;
  int blocking, cluster_size, least_blocks, most_blocks;
  const char* net;
  int split_share, traffic_class;
};
}

constexpr int kNcclSuccess = 0, kNcclInProgress = 7;
constexpr int kNcclBytes = 1;  // ncclUint8
constexpr unsigned kNcclMagic = 0xcafebeef, kNcclVersion = 22200;
constexpr int kNcclUndefined = INT_MIN;

/// The functions, by their names in the library.
struct NcclFunctions {
  int (*get_version)(int*);
  int (*get_unique_id)(NcclUniqueId*);
  int (*init)(ncclComm**, int, NcclUniqueId, int, NcclConfig*);
  int (*send)(const void*, std::size_t, int, int, ncclComm*, void*);
  int (*receive)(void*, std::size_t, int, int, ncclComm*, void*);
  int (*state)(ncclComm*, int*);
  int (*abort)(ncclComm*);
  int (*group_start)();
  int (*group_end)();
  const char* (*text)(int);
  int (*bus_id)(char*, int, int);  // of the CUDA runtime
};

/// Returns false if the library lacks one.
bool find_functions(void* library, NcclFunctions& functions) {
  const auto find = [library](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  return find(functions.get_version, "ncclGetVersion") &&
         find(functions.get_unique_id, "ncclGetUniqueId") &&
         find(functions.init, "ncclCommInitRankConfig") && find(functions.send, "ncclSend") &&
         find(functions.receive, "ncclRecv") && find(functions.state, "ncclCommGetAsyncError") &&
         find(functions.abort, "ncclCommAbort") && find(functions.group_start, "ncclGroupStart") &&
         find(functions.group_end, "ncclGroupEnd") && find(functions.text, "ncclGetErrorString") &&
         find(functions.bus_id, "cudaDeviceGetPCIBusId");
}

Error failure(const NcclFunctions& nccl, std::string_view call, int result) {
  return {Errc::DeviceFailed, fmt::format("NCCL's {} failed: {}", call, nccl.text(result))};
}

class CudaCommunicator final : public Nccl::Communicator {
 public:
  /// `made`: null if NCCL made none.
  CudaCommunicator(const NcclFunctions& nccl, ncclComm* made) : nccl_(nccl), comm_(made) {}
  ~CudaCommunicator() override {
    if (ncclComm* const comm = take()) {
      (void)nccl_.abort(comm);  // it has no other use then
    }
  }
  CudaCommunicator(const CudaCommunicator&) = delete;
  CudaCommunicator& operator=(const CudaCommunicator&) = delete;

  void send(const void* data, std::size_t bytes, const c10::Stream& stream) override {
    constexpr int kReceiver = 1;
    call("send",
         [&] { return nccl_.send(data, bytes, kNcclBytes, kReceiver, comm_, native(stream)); });
  }
  void receive(void* data, std::size_t bytes, const c10::Stream& stream) override {
    constexpr int kSender = 0;
    call("receive",
         [&] { return nccl_.receive(data, bytes, kNcclBytes, kSender, comm_, native(stream)); });
  }
  [[nodiscard]] bool is_settled() override {
    int result = kNcclSuccess;
    call("connection", [&] {
      const int asked = nccl_.state(comm_, &result);
      return asked == kNcclSuccess ? result : asked;
    });
    return result == kNcclSuccess;
  }
  /// Makes later calls fail. Returns what NCCL has to abort; null if nothing is left.
  [[nodiscard]] ncclComm* take() noexcept {
    const std::scoped_lock lock(mutex_);
    return std::exchange(comm_, nullptr);
  }

 private:
  static void* native(const c10::Stream& stream) {
    return c10::impl::VirtualGuardImpl(stream.device_type()).getStreamNativeHandle(stream);
  }

  /// The call may go on in NCCL when it returns: these communicators never let the host wait.
  template <class Call>
  void call(std::string_view name, Call&& made) {
    const std::scoped_lock lock(mutex_);
    if (comm_ == nullptr) {
      throw Error(Errc::DeviceFailed, "a transfer of NCCL was aborted");
    }
    if (const int result = made(); result != kNcclSuccess && result != kNcclInProgress) {
      throw failure(nccl_, name, result);
    }
  }

  const NcclFunctions& nccl_;
  std::mutex mutex_;  ///< another thread may abort
  ncclComm* comm_;
};

class CudaNccl final : public Nccl {
 public:
  explicit CudaNccl(const NcclFunctions& functions) : nccl_(functions) {}

  /// The boot tells hosts apart, and containers of one host do not differ in it.
  [[nodiscard]] std::string name_of(const c10::Device& device) override {
    std::array<char, 32> bus{};
    if (nccl_.bus_id(bus.data(), static_cast<int>(bus.size()), device.index()) != 0) {
      throw Error(Errc::DeviceFailed,
                  fmt::format("the CUDA runtime does not say where {} is", device.str()));
    }
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    return fmt::format("{} {}", boot, bus.data());
  }
  [[nodiscard]] Id new_id() override {
    NcclUniqueId made{};
    if (const int result = nccl_.get_unique_id(&made); result != kNcclSuccess) {
      throw failure(nccl_, "new id", result);
    }
    Id id{};
    std::ranges::copy(made.bytes, id.begin());
    return id;
  }
  [[nodiscard]] std::unique_ptr<Communicator> join(const Id& id,
                                                   End end,
                                                   const c10::Device& device) override {
    constexpr int kEnds = 2;
    NcclUniqueId both{};
    std::ranges::copy(id, std::begin(both.bytes));
    NcclConfig config{.size = sizeof(NcclConfig),
                      .magic = kNcclMagic,
                      .version = kNcclVersion,
                      .blocking = 0,  // so that an abort can end a wait for the other end
                      .cluster_size = kNcclUndefined,
                      .least_blocks = kNcclUndefined,
                      .most_blocks = kNcclUndefined,
                      .net = nullptr,
                      .split_share = kNcclUndefined,
                      .traffic_class = kNcclUndefined};
    c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
    ncclComm* made = nullptr;
    const int result = nccl_.init(&made, kEnds, both, end == End::Sends ? 0 : 1, &config);
    auto communicator = std::make_unique<CudaCommunicator>(nccl_, made);
    if (result != kNcclSuccess && result != kNcclInProgress) {
      throw failure(nccl_, "connection", result);
    }
    return communicator;
  }
  void abort(const std::vector<std::shared_ptr<Communicator>>& ends) noexcept override {
    (void)nccl_.group_start();
    for (const auto& end : ends) {
      if (ncclComm* const comm = static_cast<CudaCommunicator&>(*end).take()) {
        (void)nccl_.abort(comm);  // it has no other use then
      }
    }
    (void)nccl_.group_end();
  }

 private:
  const NcclFunctions nccl_;
};

std::shared_ptr<Nccl> find_nccl() {
  const auto none = [](std::string_view why) {
    log(Level::Warning,
        "no NCCL: tensors between GPUs of different processes cross in the host's memory",
        {{"why", why}});
    return nullptr;
  };
  NcclFunctions functions{};
  // LibTorch's CUDA part has loaded it, unless it contains one that it keeps to itself.
  if (!find_functions(RTLD_DEFAULT, functions)) {
    void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      return none(dlerror());
    }
    if (!find_functions(RTLD_DEFAULT, functions)) {
      return none("libnccl.so.2 or the CUDA runtime lacks a function that is needed");
    }
  }
  int version = 0;
  if (functions.get_version(&version) != kNcclSuccess || version < static_cast<int>(kNcclVersion)) {
    return none(
        fmt::format("libnccl.so.2 is version {}, needed is {} (2.22)", version, kNcclVersion));
  }
  log(Level::Info, "NCCL found", {{"version", version}});
  return std::make_shared<CudaNccl>(functions);
}

}  // namespace

std::shared_ptr<Nccl> nccl_library() {
  static const std::shared_ptr<Nccl> library = find_nccl();
  return library;
}

}  // namespace stagecraft
