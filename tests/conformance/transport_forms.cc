#include "stagecraft/tests/conformance/transport_forms.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/conformance/processes.h"
#include "stagecraft/tests/support/faulty_transport.h"

namespace stagecraft {
namespace {

Endpoints ends_of(const Network& network, int ranks) {
  Endpoints ends;
  ends.driver = network.endpoint(kDriver);
  for (int rank = 0; rank < ranks; ++rank) {
    ends.ranks.push_back(network.endpoint(Rank{rank}));
  }
  return ends;
}

Endpoints ends_of(const Homes& homes, DataPortOptions options) {
  const bool shares = options.shared_memory > 0;
  const auto processes = std::make_shared<Processes>(homes, std::move(options));
  if (shares) {
    processes->begin_to_share();
  }
  Endpoints ends;
  ends.driver = processes->endpoint(kDriver);
  for (int rank = 0; rank < processes->ranks(); ++rank) {
    ends.ranks.push_back(processes->endpoint(Rank{rank}));
  }
  ends.transports = processes->transports();
  ends.replace = [processes](Rank rank, std::int64_t after_bytes) {
    return processes->replace(rank, after_bytes);
  };
  return ends;
}

Homes each_its_own(int ranks) {
  Homes homes;
  for (int i = 0; i < ranks + 1; ++i) {
    homes.push_back(static_cast<std::size_t>(i));
  }
  return homes;
}

/// Each has a process of its own.
Endpoints over_tcp(int ranks) {
  return ends_of(each_its_own(ranks), {.bind = "tcp://127.0.0.1:*"});
}

Endpoints over_local_sockets(int ranks) {
  return ends_of(each_its_own(ranks), {.bind = "ipc://*"});
}

/// FaultyTransport fails only on command.
Endpoints faulty_without_faults(int ranks) {
  Endpoints ends = in_one_process(ranks);
  ends.driver = std::make_shared<FaultyTransport>(ends.driver);
  for (std::shared_ptr<Transport>& end : ends.ranks) {
    end = std::make_shared<FaultyTransport>(end);
  }
  return ends;
}

constexpr TransportForm kForms[] = {{"in one process", in_one_process},
                                    {"over TCP", over_tcp},
                                    {"over local sockets", over_local_sockets},
                                    {"over shared memory", over_shared_memory},
                                    {"here and elsewhere", here_and_elsewhere},
                                    {"faulty without faults", faulty_without_faults}};

}  // namespace

std::span<const TransportForm> transport_forms() {
  return kForms;
}

Endpoints in_one_process(int ranks) {
  return ends_of(InprocNetwork(ranks), ranks);
}

Endpoints over_shared_memory(int ranks) {
  return ends_of(each_its_own(ranks), {.bind = "ipc://*", .shared_memory = std::int64_t{1} << 30U});
}

Endpoints here_and_elsewhere(int ranks) {
  Homes homes{0};
  for (int rank = 0; rank < ranks; ++rank) {
    homes.push_back(static_cast<std::size_t>((rank + 1) / 2));
  }
  return ends_of(homes, {.bind = "ipc://*"});
}

}  // namespace stagecraft
