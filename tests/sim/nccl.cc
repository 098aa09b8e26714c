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
#include <numeric>
#include <optional>
#include <utility>

#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "stagecraft/tests/sim/device.h"
#include "stagecraft/tests/sim/machine.h"

namespace stagecraft::sim {
namespace {

constexpr int kSuccess = 0, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7;
constexpr int kVersion = 22809;
constexpr int kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9;
/// The ends of a transfer.
constexpr std::size_t kSends = 0, kReceives = 1;

/// Transfer is one send and its receive.
struct Transfer {
  std::array<bool, 2> given{}, runs{}, over{};  ///< by end
  std::vector<char> bytes;                      ///< what the send has read
  bool is_here = false;                         ///< the bytes are
  std::shared_ptr<Mark> sent;                   ///< after the send in its stream
};

/// Comm is a communicator.
struct Comm {
  int number = 0;
  std::vector<int> devices;  ///< by member; -1: it has not joined
  std::vector<bool> aborted;
  std::vector<std::int64_t> calls;
  bool is_of_groups = false;  ///< there was a call that more than two members make
  /// By sender and receiver.
  std::map<std::pair<int, int>, std::deque<Transfer>> transfers;
  std::map<std::pair<int, int>, std::array<std::size_t, 2>> given;

  Transfer& next(int from, int to, std::size_t end) {
    std::deque<Transfer>& all = transfers[{from, to}];
    const std::size_t n = given[{from, to}].at(end)++;
    if (n == all.size()) {
      all.emplace_back();
    }
    return all[n];  // stays where it is
  }
};

/// Part is one end of a transfer in a call.
struct Part {
  int peer = 0;
  const void* data = nullptr;
  std::size_t bytes = 0;
  Transfer* transfer = nullptr;
};

/// Call is what one function gives a stream.
struct Call {
  std::string name;
  std::vector<Part> sends, receives;
  std::function<void(const std::vector<Part>& received)> at_end = {};
};

struct World {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::shared_ptr<Comm>> comms;  ///< by id
  std::int64_t ids = 0;
  std::string failing;

  static World& the() {
    static World* const world = new World();  // streams' threads outlive static objects
    return *world;
  }
};

/// Reads what is sent, waits for the other ends, and writes what is received. Keeps SNC-1.
void run(Comm& comm, int member, const Call& call, bool meets) {
  World& world = World::the();
  const auto is_aborted = [&] { return comm.aborted.at(static_cast<std::size_t>(member)); };
  std::unique_lock running(world.mutex);
  for (const Part& part : call.sends) {
    const auto* from = static_cast<const char*>(on_host(part.data));
    part.transfer->bytes.assign(from, from + part.bytes);
    part.transfer->runs.at(kSends) = part.transfer->is_here = true;
  }
  for (const Part& part : call.receives) {
    part.transfer->runs.at(kReceives) = true;
  }
  world.changed.notify_all();
  world.changed.wait(running, [&] {
    const auto is_met = [&](const Part& part) {
      return !meets || part.transfer->runs.at(kReceives);
    };
    const auto is_here = [](const Part& part) { return part.transfer->is_here; };
    return is_aborted() ||
           (std::ranges::all_of(call.sends, is_met) && std::ranges::all_of(call.receives, is_here));
  });
  for (const Part& part : call.sends) {
    part.transfer->over.at(kSends) = true;
  }
  for (const Part& part : call.receives) {
    part.transfer->over.at(kReceives) = true;
    if (part.transfer->is_here && part.data != nullptr) {
      std::memcpy(on_host(part.data),
                  part.transfer->bytes.data(),
                  std::min(part.bytes, part.transfer->bytes.size()));
    }
  }
  if (call.at_end && !is_aborted()) {
    call.at_end(call.receives);
  }
}

void launch(const std::shared_ptr<Comm>& comm, int member, const Call& call, Stream& stream) {
  World& world = World::the();
  Machine& machine = Machine::the();
  const bool meets = !machine.options().at_once;
  std::vector<Machine::Access> accesses;
  std::vector<std::shared_ptr<Mark>> sent;
  {
    const std::scoped_lock lock(world.mutex);
    for (const Part& part : call.sends) {
      accesses.push_back({part.data, part.bytes, false});
    }
    for (const Part& part : call.receives) {
      if (part.data != nullptr) {
        accesses.push_back({part.data, part.bytes, true});
      }
      part.transfer->given.at(kReceives) = true;
      sent.push_back(part.transfer->sent);
    }
  }
  for (const auto& mark : sent) {
    if (mark) {
      machine.follow(stream, *mark);
    }
  }
  machine.launch(stream, call.name, accesses, [comm, member, call, meets] {
    run(*comm, member, call, meets);
  });
  const auto after = machine.record(stream);
  const std::scoped_lock lock(world.mutex);
  for (const Part& part : call.sends) {
    part.transfer->sent = after;
    part.transfer->given.at(kSends) = true;
  }
}

}  // namespace

std::int64_t nccl_transfers() {
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  std::int64_t all = 0;
  for (const auto& [id, comm] : world.comms) {
    for (const auto& [pair, transfers] : comm->transfers) {
      all += comm->is_of_groups ? 0 : std::ssize(transfers) - 1;
    }
  }
  return all;
}

std::int64_t nccl_group_calls() {
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  std::int64_t all = 0;
  for (const auto& [id, comm] : world.comms) {
    all += comm->is_of_groups ? std::accumulate(comm->calls.begin(), comm->calls.end(), 0L) : 0;
  }
  return all;
}

std::vector<std::string> nccl_unfinished() {
  constexpr std::array kNames{"send", "receive"};
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  std::vector<std::string> found;
  for (const auto& [id, comm] : world.comms) {
    for (const auto& [pair, transfers] : comm->transfers) {
      for (std::size_t n = 0; n < transfers.size(); ++n) {
        for (const std::size_t end : {kSends, kReceives}) {
          if (transfers[n].given.at(end) && !transfers[n].over.at(end)) {
            found.push_back(
                fmt::format("{} {} of communicator {}", kNames.at(end), n, comm->number));
          }
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
  std::shared_ptr<Comm> comm;
  int member;
  std::function<void()> launch = {};  ///< of the last call, until it is asked for twice
  int asked = 0;
};
struct ncclUniqueId {
  char internal[128];
};

/// The calls of this thread's group, of one communicator.
struct Group {
  ncclComm* comm = nullptr;
  Stream* stream = nullptr;
  Call call;
};
thread_local std::optional<Group> group;

int members(const ncclComm& comm) {
  return static_cast<int>(comm.comm->devices.size());
}

/// Begins a call: it is given to its stream later. Keeps SNC-2.
int begin(ncclComm& comm, Call call, Stream& stream) {
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  if (world.failing == call.name) {
    return kRemoteError;
  }
  for (Part& part : call.sends) {
    part.transfer = &comm.comm->next(comm.member, part.peer, kSends);
  }
  for (Part& part : call.receives) {
    part.transfer = &comm.comm->next(part.peer, comm.member, kReceives);
  }
  ++comm.comm->calls.at(static_cast<std::size_t>(comm.member));
  comm.asked = 0;
  comm.launch = [made = comm.comm, member = comm.member, call = std::move(call), &stream] {
    launch(made, member, call, stream);
  };
  return kInProgress;
}

/// Begins a call that all members make.
int begin_of_group(ncclComm& comm, Call call, Stream& stream) {
  {
    const std::scoped_lock lock(World::the().mutex);
    comm.comm->is_of_groups = true;
  }
  return begin(comm, std::move(call), stream);
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

int ncclCommInitRankConfig(ncclComm** made, int count, ncclUniqueId id, int rank, const void*) {
  World& world = World::the();
  const std::scoped_lock lock(world.mutex);
  if (world.failing == "ncclCommInitRankConfig") {
    return kRemoteError;
  }
  auto& comm = world.comms[{id.internal, sizeof id.internal}];
  if (!comm) {
    const auto all = static_cast<std::size_t>(count);
    comm = std::make_shared<Comm>();
    comm->number = static_cast<int>(world.comms.size());
    comm->devices.assign(all, -1);
    comm->aborted.assign(all, false);
    comm->calls.assign(all, 0);
  }
  const int device = c10::impl::VirtualGuardImpl(kType).getDevice().index();
  const auto member = static_cast<std::size_t>(rank);
  if (std::ssize(comm->devices) != count || comm->devices.at(member) >= 0 ||
      std::ranges::find(comm->devices, device) != comm->devices.end()) {
    return kInvalidUsage;
  }
  comm->devices.at(member) = device;
  *made = new ncclComm{comm, rank};
  return kInProgress;
}

int ncclCommGetAsyncError(ncclComm* comm, int* result) {
  World& world = World::the();
  if (comm->launch && comm->asked++ > 0) {
    std::exchange(comm->launch, {})();
  }
  const std::scoped_lock lock(world.mutex);
  const Comm& all = *comm->comm;
  const bool is_first = all.calls.at(static_cast<std::size_t>(comm->member)) <= 1;
  const bool is_done = !comm->launch && std::ranges::find(all.devices, -1) == all.devices.end() &&
                       (!is_first || *std::ranges::min_element(all.calls) >=
                                         all.calls.at(static_cast<std::size_t>(comm->member)));
  *result = world.failing == "ncclCommGetAsyncError" ? kRemoteError
            : is_done                                ? kSuccess
                                                     : kInProgress;
  return kSuccess;
}

int ncclCommAbort(ncclComm* comm) {
  World& world = World::the();
  {
    const std::scoped_lock lock(world.mutex);
    comm->comm->aborted.at(static_cast<std::size_t>(comm->member)) = true;
  }
  world.changed.notify_all();
  delete comm;
  return kSuccess;
}

// Aborts are not kept for the end of a group: their order does not matter.
int ncclGroupStart() {
  group.emplace();
  return kSuccess;
}
int ncclGroupEnd() {
  const Group ended = *std::exchange(group, std::nullopt);
  return ended.comm == nullptr ? kSuccess : begin_of_group(*ended.comm, ended.call, *ended.stream);
}

int ncclSend(const void* data, std::size_t bytes, int, int to, ncclComm* comm, void* native) {
  auto* const stream = static_cast<Stream*>(native);
  if (group) {
    group->comm = comm;
    group->stream = stream;
    group->call.name = "ncclGroupEnd";
    group->call.sends.push_back({to, data, bytes});
    return kSuccess;
  }
  return begin(*comm, {.name = "ncclSend", .sends = {{to, data, bytes}}}, *stream);
}

int ncclRecv(void* data, std::size_t bytes, int, int from, ncclComm* comm, void* native) {
  if (group) {
    group->call.receives.push_back({from, data, bytes});
    return kSuccess;
  }
  return begin(*comm,
               {.name = "ncclRecv", .receives = {{from, data, bytes}}},
               *static_cast<Stream*>(native));
}

int ncclAllGather(
    const void* data, void* all, std::size_t bytes, int, ncclComm* comm, void* native) {
  Call call{.name = "ncclAllGather"};
  for (int peer = 0; peer < members(*comm); ++peer) {
    call.sends.push_back({peer, data, bytes});
    call.receives.push_back({peer, static_cast<char*>(all) + bytes * peer, bytes});
  }
  return begin_of_group(*comm, std::move(call), *static_cast<Stream*>(native));
}

/// Adds from the last member to the first, so that sums in another order than that of the ranks
/// show.
int ncclAllReduce(
    const void* data, void* sum, std::size_t count, int type, int, ncclComm* comm, void* native) {
  const std::map<int, at::ScalarType> types{{kFloat16, at::kHalf},
                                            {kFloat32, at::kFloat},
                                            {kFloat64, at::kDouble},
                                            {kBfloat16, at::kBFloat16}};
  const at::ScalarType dtype = types.at(type);
  const std::size_t bytes = count * c10::elementSize(dtype);
  Call call{.name = "ncclAllReduce"};
  for (int peer = 0; peer < members(*comm); ++peer) {
    call.sends.push_back({peer, data, bytes});
    call.receives.push_back({peer, peer == 0 ? sum : nullptr, bytes});
  }
  call.at_end = [=](const std::vector<Part>& received) {
    const auto tensor = [&](const void* of) {
      return at::from_blob(const_cast<void*>(of), {static_cast<std::int64_t>(count)}, dtype);
    };
    const at::Tensor result = tensor(on_host(sum));
    result.zero_();
    for (auto part = received.rbegin(); part != received.rend(); ++part) {
      result.add_(tensor(part->transfer->bytes.data()));
    }
  };
  return begin_of_group(*comm, std::move(call), *static_cast<Stream*>(native));
}
}
// NOLINTEND(readability-identifier-naming, modernize-avoid-c-arrays)

}  // namespace stagecraft::sim
