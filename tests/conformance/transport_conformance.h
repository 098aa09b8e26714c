/// Holds the contract of `futures/transport/transport.h` as a list of cases that every transport
/// has to pass.
///
/// transport_conformance_test.cc runs it for every form in transport_forms.h.
///
/// No case expects a tensor to be there at once: every case waits for arrival.
#pragma once

#include <vector>

#include "stagecraft/tests/conformance/transport_case.h"

namespace stagecraft {

[[nodiscard]] const std::vector<TransportCase>& transport_cases();

}  // namespace stagecraft
