#include "stagecraft/tests/sim/nccl.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "stagecraft/tests/sim/device.h"
#include "stagecraft/tests/sim/machine.h"

namespace stagecraft::sim {
namespace {

constexpr int kSuccess = 0, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7;
constexpr int kVersion = 22809;
constexpr std::size_t kSends = 0;  ///< the number of this end; the other one receives

/// Transfer is one send and its receive.
struct Transfer {
  std::array<bool, 2> given{}, runs{}, over{};  ///< by end
  std::vector<char> bytes;                      ///< what the send has read
  bool is_here = false;                         ///< the bytes are
  std::shared_ptr<Mark> sent;                   ///< after the send in its stream
};

/// Pair is a communicator.
struct Pair {
  int number = 0;
  std::array<int, 2> devices{-1, -1};  ///< by end; -1: it has not joined
  std::array<bool, 2> aborted{};
  std::array<std::size_t, 2> given{};
  std::deque<Transfer> transfers;

  Transfer& next(std::size_t end) {
    const std::size_t n = given.at(end)++;
    if (n == transfers.size()) {
      transfers.emplace_back();
    }
    return transfers[n];
  }
};

struct World {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::shared_ptr<Pair>> pairs;  ///< by id
  std::int64_t ids = 0;
  std::string failing;

  static World& the() {
    static World* const world = new World();  // streams' threads outlive static objects
    return *world;
  }
};

void launch_send(const std::shared_ptr<Pair>& pair,
                 Transfer& transfer,
                 const void* data,
                 std::size_t bytes,
                 Stream& stream) {
  World& world = World::the();
  Machine& machine = Machine::the();
  const bool meets = !machine.options().at_once;  // keeps SNC-1
  machine.launch(
      stream, "ncclSend", {{data, bytes, false}}, [&world, pair, &transfer, data, bytes, meets] {
        std::unique_lock running(world.mutex);
        transfer.runs.at(kSends) = true;
        const auto* from = static_cast<const char*>(on_host(data));
        transfer.bytes.assign(from, from + bytes);
        transfer.is_here = true;
        world.changed.notify_all();
        world.changed.wait(running, [&] {
          return !meets || transfer.runs.at(1 - kSends) || pair->aborted.at(kSends);
        });
        transfer.over.at(kSends) = true;
      });
  const auto after = machine.record(stream);
  const std::scoped_lock lock(world.mutex);
  transfer.sent = after;
  transfer.given.at(kSends) = true;
}

void launch_receive(const std::shared_ptr<Pair>& pair,
                    Transfer& transfer,
                    const void* data,
                    std::size_t bytes,
                    Stream& stream) {
  constexpr std::size_t kReceives = 1 - kSends;
  World& world = World::the();
  std::shared_ptr<Mark> sent;
  {
    const std::scoped_lock lock(world.mutex);
    transfer.given.at(kReceives) = true;
    sent = transfer.sent;
  }
  if (sent) {
    Machine::the().follow(stream, *sent);
  }
  Machine::the().launch(
      stream, "ncclRecv", {{data, bytes, true}}, [&world, pair, &transfer, data, bytes] {
        std::unique_lock running(world.mutex);
        transfer.runs.at(kReceives) = true;
        world.changed.notify_all();
        world.changed.wait(running,
                           [&] { return transfer.is_here || pair->aborted.at(kReceives); });
        if (transfer.is_here) {
          std::memcpy(on_host(data), transfer.bytes.data(), std::min(bytes, transfer.bytes.size()));
        }
        transfer.over.at(kReceives) = true;
      });
}

}  // namespace

std::int64_t nccl_transfers() {
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  std::int64_t all = 0;
  for (const auto& [id, pair] : world.pairs) {
    all += std::max<std::int64_t>(std::ssize(pair->transfers) - 1, 0);
  }
  return all;
}

std::vector<std::string> nccl_unfinished() {
  constexpr std::array kNames{"send", "receive"};
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  std::vector<std::string> found;
  for (const auto& [id, pair] : world.pairs) {
    for (std::size_t n = 0; n < pair->transfers.size(); ++n) {
      for (std::size_t end = 0; end < 2; ++end) {
        const Transfer& transfer = pair->transfers[n];
        if (transfer.given.at(end) && !transfer.over.at(end)) {
          found.push_back(fmt::format("{} {} of communicator {}", kNames.at(end), n, pair->number));
        }
      }
    }
  }
  return found;
}

NcclFails::NcclFails(std::string call) {
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  world.failing = std::move(call);
}

NcclFails::~NcclFails() {
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  world.failing.clear();
}

// NCCL's names and arguments.
// NOLINTBEGIN(readability-identifier-naming, modernize-avoid-c-arrays)
struct ncclComm {
  std::shared_ptr<Pair> pair;
  std::size_t end;
  std::function<void()> launch = {};  ///< of the last call, until it is asked for twice
  int asked = 0;
};
struct ncclUniqueId {
  char internal[128];
};

/// Begins the next transfer of the end: `launch` gives it to its stream.
template <class Launch>
int begin(ncclComm& comm, std::string_view call, std::size_t end, Launch&& launch) {
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  if (world.failing == call) {
    return kRemoteError;
  }
  comm.asked = 0;
  comm.launch = [pair = comm.pair, &transfer = comm.pair->next(end), launch] {
    launch(pair, transfer);  // the transfer stays where it is
  };
  return kInProgress;
}

extern "C" {

int ncclGetVersion(int* version) {
  *version = kVersion;
  return kSuccess;
}

const char* ncclGetErrorString(int result) {
  return result == kRemoteError ? "remote process exited or there was a network error"
                                : "invalid usage";
}

int cudaDeviceGetPCIBusId(char* text, int size, int device) {
  fmt::format_to_n(text, size - 1, "sim:{}", device);
  return 0;
}

int ncclGetUniqueId(ncclUniqueId* id) {
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  std::memcpy(id->internal, &++world.ids, sizeof world.ids);
  return kSuccess;
}

int ncclCommInitRankConfig(ncclComm** made, int ends, ncclUniqueId id, int rank, const void*) {
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  if (world.failing == "ncclCommInitRankConfig") {
    return kRemoteError;
  }
  auto& pair = world.pairs[{id.internal, sizeof id.internal}];
  if (!pair) {
    pair = std::make_shared<Pair>();
    pair->number = static_cast<int>(world.pairs.size());
  }
  const int device = c10::impl::VirtualGuardImpl(kType).getDevice().index();
  const auto end = static_cast<std::size_t>(rank);
  if (ends != 2 || pair->devices.at(end) >= 0 || pair->devices.at(1 - end) == device) {
    return kInvalidUsage;
  }
  pair->devices.at(end) = device;
  *made = new ncclComm{pair, end};
  return kInProgress;
}

int ncclCommGetAsyncError(ncclComm* comm, int* result) {
  World& world = World::the();
  if (comm->launch && comm->asked++ > 0) {
    std::exchange(comm->launch, {})();
  }
  const std::scoped_lock lock(world.mutex);
  const Pair& pair = *comm->pair;
  const bool is_done = !comm->launch && std::ranges::find(pair.devices, -1) == pair.devices.end() &&
                       (pair.given.at(comm->end) == 0 || pair.given.at(1 - comm->end) > 0);
  *result = world.failing == "ncclCommGetAsyncError" ? kRemoteError
            : is_done                                ? kSuccess
                                                     : kInProgress;
  return kSuccess;
}

int ncclCommAbort(ncclComm* comm) {
  World& world = World::the();
  {
    const std::scoped_lock lock(world.mutex);
    comm->pair->aborted.at(comm->end) = true;
  }
  world.changed.notify_all();
  delete comm;
  return kSuccess;
}

// Only aborts are grouped, and their order does not matter.
int ncclGroupStart() {
  return kSuccess;
}
int ncclGroupEnd() {
  return kSuccess;
}

int ncclSend(const void* data, std::size_t bytes, int, int, ncclComm* comm, void* native) {
  return begin(*comm, "ncclSend", kSends, [=](const auto& pair, Transfer& transfer) {
    launch_send(pair, transfer, data, bytes, *static_cast<Stream*>(native));
  });
}

int ncclRecv(void* data, std::size_t bytes, int, int, ncclComm* comm, void* native) {
  return begin(*comm, "ncclRecv", 1 - kSends, [=](const auto& pair, Transfer& transfer) {
    launch_receive(pair, transfer, data, bytes, *static_cast<Stream*>(native));
  });
}
}
// NOLINTEND(readability-identifier-naming, modernize-avoid-c-arrays)

}  // namespace stagecraft::sim
