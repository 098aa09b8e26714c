/// Lets the tests of the whole runtime train on simulated devices, whose detector has to find
/// nothing.
#include <string>
#include <vector>

#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/usual_device.h"

namespace stagecraft::tests {
namespace {

const bool kTrainsOnDevices = [] {
  testing::usual_device = "sim";
  testing::at_the_end = [] { CHECK(SimDevices::take_reports() == std::vector<std::string>()); };
  return kSimInstalled;
}();

TEST_CASE("trainers of these tests are on devices", "[sim]") {
  const Program program = make_program();
  Trainer trainer(Cluster::local(2), program, make_schedule("1f1b", program), AdamW{});
  SimDevices::restart();
  (void)step_of(trainer, 0).get();
  CHECK(SimDevices::issuing_threads() == 2);
}

}  // namespace
}  // namespace stagecraft::tests
