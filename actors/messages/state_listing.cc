#include "stagecraft/actors/messages/state_listing.h"

#include <c10/core/ScalarType.h>

namespace stagecraft {

void add_tensors(StateListing& listing, const std::vector<NamedTensor>& state) {
  for (const auto& [name, tensor] : state) {
    listing.names.push_back(name);
    listing.shapes.push_back(tensor.sizes().vec());
    listing.types.emplace_back(c10::toString(tensor.scalar_type()));
  }
}

}  // namespace stagecraft
