#include "stagecraft/tests/conformance/transport_forms.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/conformance/processes.h"
#include "stagecraft/tests/support/faulty_transport.h"

namespace stagecraft {
namespace {

Endpoints ends_of(const Network& network, int ranks) {
  Endpoints ends{network.endpoint(kDriver), {}};
  for (int rank = 0; rank < ranks; ++rank) {
    ends.ranks.push_back(network.endpoint(Rank{rank}));
  }
  return ends;
}

Endpoints ends_of(const Homes& homes, const std::string& bind) {
  const auto processes = std::make_shared<Processes>(homes, bind);
  Endpoints ends;
  ends.driver = processes->endpoint(kDriver);
  for (int rank = 0; rank < processes->ranks(); ++rank) {
    ends.ranks.push_back(processes->endpoint(Rank{rank}));
  }
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

}  // namespace

Endpoints InOneProcess::ends(int ranks) {
  return ends_of(InprocNetwork(ranks), ranks);
}

Endpoints OverTcp::ends(int ranks) {
  return ends_of(each_its_own(ranks), "tcp://127.0.0.1:*");
}

Endpoints OverLocalSockets::ends(int ranks) {
  return ends_of(each_its_own(ranks), "ipc://*");
}

Endpoints HereAndElsewhere::ends(int ranks) {
  Homes homes{0};
  for (int rank = 0; rank < ranks; ++rank) {
    homes.push_back(static_cast<std::size_t>((rank + 1) / 2));
  }
  return ends_of(homes, "ipc://*");
}

Endpoints FaultyWithoutFaults::ends(int ranks) {
  Endpoints ends = InOneProcess::ends(ranks);
  ends.driver = std::make_shared<FaultyTransport>(ends.driver);
  for (std::shared_ptr<Transport>& end : ends.ranks) {
    end = std::make_shared<FaultyTransport>(end);
  }
  return ends;
}

}  // namespace stagecraft
