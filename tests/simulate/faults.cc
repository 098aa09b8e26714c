#include "stagecraft/tests/simulate/faults.h"

#include <algorithm>

namespace stagecraft::simulation {

using namespace std::chrono_literals;

std::vector<Fault> draw_faults(Random& random, int count, int ranks, std::int64_t events) {
  const auto any_rank = [&] {
    return Rank(static_cast<int>(random.below(static_cast<std::uint64_t>(ranks))));
  };
  std::vector<Fault> faults;
  for (int i = 0; i < count; ++i) {
    Fault fault{.after =
                    static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(events)))};
    fault.rank = any_rank();
    if (!faults.empty() && random.one_in(4)) {  // soon after another: while that is mended
      fault.after = faults.back().after + static_cast<std::int64_t>(random.below(60));
    }
    switch (random.below(4)) {
      case 0:
        fault.kind = Fault::Kind::Kill;
        break;
      case 1:
        fault.kind = Fault::Kind::Stop;
        fault.span = random.up_to(random.one_in(3) ? 30s : 1s);
        break;
      default:
        fault.kind = Fault::Kind::Hold;
        fault.other = any_rank();
        if (fault.other == fault.rank || random.one_in(3)) {
          fault.other = kDriver;
        }
        fault.span = random.up_to(random.one_in(4) ? 5s : 200ms);
        fault.planes = random.one_in(2)   ? std::vector{Plane::Control, Plane::Data}
                       : random.one_in(2) ? std::vector{Plane::Data}
                                          : std::vector{Plane::Control};
    }
    faults.push_back(fault);
  }
  std::ranges::stable_sort(faults, {}, &Fault::after);
  return faults;
}

bool strike(const Fault& fault, Processes& processes) {
  switch (fault.kind) {
    case Fault::Kind::Kill:
      return processes.kill(fault.rank);
    case Fault::Kind::Stop:
      return processes.stop(fault.rank, fault.span);
    case Fault::Kind::Hold:
      break;
  }
  return processes.hold(fault.other, fault.rank, fault.planes, fault.span);
}

}  // namespace stagecraft::simulation
