#include "stagecraft/actors/executor/run/step_losses.h"

#include <ATen/ops/full.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("losses are read as numbers, ascending by microbatch, each once", "[executor][losses]") {
  StepLosses losses;
  CHECK(losses.read().empty());
  losses.add(Microbatch(2), at::full({}, 0.5));
  losses.add(Microbatch(0), at::full({}, 0.25));
  const std::vector<MicrobatchLoss> first{{Microbatch(0), 0.25}, {Microbatch(2), 0.5}};
  CHECK((losses.read() == first));
  CHECK((losses.read() == first));
  losses.add(Microbatch(1), at::full({}, 4.0, at::kDouble));
  CHECK((losses.read() == std::vector<MicrobatchLoss>{
                              {Microbatch(0), 0.25}, {Microbatch(1), 4.0}, {Microbatch(2), 0.5}}));
}

}  // namespace
}  // namespace stagecraft
