#include "stagecraft/actors/executor/nccl/nccl_library.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
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
constexpr int kNcclSum = 0;
constexpr unsigned kNcclMagic = 0xcafebeef, kNcclVersion = 22200;
constexpr int kNcclUndefined = INT_MIN;

/// The functions, by their names in the library.
struct NcclFunctions {
  int (*get_version)(int*);
  int (*get_unique_id)(NcclUniqueId*);
  int (*init)(ncclComm**, int, NcclUniqueId, int, NcclConfig*);
  int (*send)(const void*, std::size_t, int, int, ncclComm*, void*);
  int (*receive)(void*, std::size_t, int, int, ncclComm*, void*);
  int (*all_gather)(const void*, void*, std::size_t, int, ncclComm*, void*);
  int (*all_reduce)(const void*, void*, std::size_t, int, int, ncclComm*, void*);
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
         find(functions.receive, "ncclRecv") && find(functions.all_gather, "ncclAllGather") &&
         find(functions.all_reduce, "ncclAllReduce") &&
         find(functions.state, "ncclCommGetAsyncError") && find(functions.abort, "ncclCommAbort") &&
         find(functions.group_start, "ncclGroupStart") &&
         find(functions.group_end, "ncclGroupEnd") && find(functions.text, "ncclGetErrorString") &&
         find(functions.bus_id, "cudaDeviceGetPCIBusId");
}

/// Requires: Nccl::has_sums_of(dtype).
int nccl_type(c10::ScalarType dtype) {
  constexpr int kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9;
  return dtype == c10::kHalf     ? kFloat16
         : dtype == c10::kDouble ? kFloat64
         : dtype == c10::kFloat  ? kFloat32
                                 : kBfloat16;
}

bool is_failure(int result) {
  return result != kNcclSuccess && result != kNcclInProgress;
}

Error failure(const NcclFunctions& nccl, std::string_view call, int result) {
  return {Errc::DeviceFailed, fmt::format("NCCL's {} failed: {}", call, nccl.text(result))};
}

class CudaCommunicator final : public Nccl::Communicator {
 public:
  /// `made`: null if NCCL made none.
  CudaCommunicator(const NcclFunctions& nccl, ncclComm* made, int member, int count)
      : nccl_(nccl), comm_(made), member_(member), count_(count) {}
  ~CudaCommunicator() override {
    if (ncclComm* const comm = take()) {
      (void)nccl_.abort(comm);  // it has no other use then
    }
  }
  CudaCommunicator(const CudaCommunicator&) = delete;
  CudaCommunicator& operator=(const CudaCommunicator&) = delete;

  void send(int to, const void* data, std::size_t bytes, const c10::Stream& stream) override {
    call("send", [&] { return nccl_.send(data, bytes, kNcclBytes, to, comm_, native(stream)); });
  }
  void receive(int from, void* data, std::size_t bytes, const c10::Stream& stream) override {
    call("receive",
         [&] { return nccl_.receive(data, bytes, kNcclBytes, from, comm_, native(stream)); });
  }
  void all_to_all(const void* parts,
                  void* received,
                  std::size_t bytes,
                  int first_round,
                  int rounds,
                  const c10::Stream& stream) override {
    const auto* const out = static_cast<const std::byte*>(parts);
    auto* const in = static_cast<std::byte*>(received);
    call("all to all", [&] {
      int failed = nccl_.group_start();
      for (int round = first_round; round < first_round + rounds; ++round) {
        const int to = (member_ + round) % count_, from = (member_ + count_ - round) % count_;
        for (const int result :
             {nccl_.send(out + bytes * to, bytes, kNcclBytes, to, comm_, native(stream)),
              nccl_.receive(in + bytes * from, bytes, kNcclBytes, from, comm_, native(stream))}) {
          failed = is_failure(failed) ? failed : result;
        }
      }
      const int result = nccl_.group_end();  // in any case, or the thread's next calls would join
      return is_failure(failed) ? failed : result;
    });
  }
  void all_gather(const void* data,
                  void* all,
                  std::size_t bytes,
                  const c10::Stream& stream) override {
    call("all gather",
         [&] { return nccl_.all_gather(data, all, bytes, kNcclBytes, comm_, native(stream)); });
  }
  void all_reduce(void* data,
                  std::int64_t count,
                  c10::ScalarType dtype,
                  const c10::Stream& stream) override {
    call("all reduce", [&] {
      return nccl_.all_reduce(data,
                              data,
                              static_cast<std::size_t>(count),
                              nccl_type(dtype),
                              kNcclSum,
                              comm_,
                              native(stream));
    });
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
      throw Error(Errc::DeviceFailed, "a communicator of NCCL was aborted");
    }
    if (const int result = made(); is_failure(result)) {
      throw failure(nccl_, name, result);
    }
  }

  const NcclFunctions& nccl_;
  std::mutex mutex_;  ///< another thread may abort
  ncclComm* comm_;
  const int member_, count_;
};

class CudaNccl final : public Nccl {
 public:
  explicit CudaNccl(const NcclFunctions& functions) : nccl_(functions) {}

  /// Containers of one host do not differ in its boot.
  [[nodiscard]] std::string name_of(const c10::Device& device) override {
    std::array<char, 32> bus{};
    if (nccl_.bus_id(bus.data(), static_cast<int>(bus.size()), device.index()) != 0) {
      throw Error(Errc::DeviceFailed,
                  fmt::format("the CUDA runtime does not say where {} is", device.str()));
    }
    std::string host;
    if (const char* const named = std::getenv("NCCL_HOSTID"); named != nullptr && *named != '\0') {
      host = named;
    } else {
      std::ifstream("/proc/sys/kernel/random/boot_id") >> host;
    }
    return fmt::format("{} {}", host, bus.data());
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
                                                   int member,
                                                   int count,
                                                   const c10::Device& device) override {
    NcclUniqueId unique{};
    std::ranges::copy(id, std::begin(unique.bytes));
    NcclConfig config{.size = sizeof(NcclConfig),
                      .magic = kNcclMagic,
                      .version = kNcclVersion,
                      .blocking = 0,  // so that an abort can end a wait for other members
                      .cluster_size = kNcclUndefined,
                      .least_blocks = kNcclUndefined,
                      .most_blocks = kNcclUndefined,
                      .net = nullptr,
                      .split_share = kNcclUndefined,
                      .traffic_class = kNcclUndefined};
    c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
    ncclComm* made = nullptr;
    const int result = nccl_.init(&made, count, unique, member, &config);
    auto communicator = std::make_unique<CudaCommunicator>(nccl_, made, member, count);
    if (is_failure(result)) {
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
