/// Lets the executor's tests run on simulated devices, whose detector has to find nothing.
#include <string>
#include <vector>

#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

const bool kOnDevices = [] {
  testing::usual_device = "sim";
  testing::before_use = [] { SimDevices::finish(); };
  testing::at_the_end = [] { CHECK(SimDevices::take_reports() == std::vector<std::string>()); };
  return kSimInstalled;
}();

}  // namespace
}  // namespace stagecraft::tests
