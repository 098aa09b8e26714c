#include "stagecraft/tests/conformance/transport_conformance.h"

#include "stagecraft/tests/conformance/transport_cases.h"

namespace stagecraft {

const std::vector<TransportCase>& transport_cases() {
  static const std::vector<TransportCase> cases = [] {
    std::vector<TransportCase> all;
    for (const auto* part : {&conformance::contract_cases(),
                             &conformance::tensor_cases(),
                             &conformance::load_cases()}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  }();
  return cases;
}

}  // namespace stagecraft
