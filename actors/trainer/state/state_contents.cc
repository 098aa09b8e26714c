#include "stagecraft/actors/trainer/state/state_contents.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include <ATen/ops/empty.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

/// Returns the sizes of the whole tensor of which a share belongs to this name: those of a
/// parameter. `name`: of the parameter, or of a state tensor of it.
at::IntArrayRef whole_sizes(const Graph& graph, const std::string& name) {
  const auto parameter = [&](const std::string& of) {
    return std::ranges::find(graph.parameters, of, &NamedTensor::name);
  };
  auto found = parameter(name);
  if (found == graph.parameters.end()) {
    found = parameter(name.substr(name.find(':') + 1));
  }
  SC_CHECK(found != graph.parameters.end(), "only a parameter and its state are shared: " + name);
  return found->tensor.sizes();
}

}  // namespace

std::vector<StateEntry> contents_of(const std::vector<NamedTensor>& unused,
                                    const Graph& graph,
                                    const std::vector<StateListing>& listings) {
  std::vector<StateEntry> contents;
  for (const auto& [name, tensor] : unused) {
    contents.push_back(
        {entry_of(name, c10::toString(tensor.scalar_type()), tensor.sizes().vec()), {}});
  }
  std::set<std::string> seen;  // copies have the same parts, and two stages can have one buffer
  struct Shared {
    std::size_t entry = 0;
    std::int64_t missing = 0;
  };
  std::map<std::string, Shared> shared;
  for (std::size_t r = 0; r < listings.size(); ++r) {
    const StateListing& listing = listings[r];
    for (std::size_t i = 0; i < listing.names.size(); ++i) {
      if (!seen.insert(listing.names[i]).second) {
        continue;
      }
      StatePart part{.rank = Rank(r), .position = static_cast<std::int32_t>(i)};
      const auto share = share_named(listing.names[i]);
      if (!share) {
        contents.push_back(
            {entry_of(listing.names[i], listing.types[i], listing.shapes[i]), {part}});
        continue;
      }
      const auto [place, is_first] = shared.try_emplace(share->name);
      if (is_first) {
        const at::IntArrayRef sizes = whole_sizes(graph, share->name);
        place->second = {contents.size(), c10::multiply_integers(sizes)};
        contents.push_back({entry_of(share->name, listing.types[i], sizes.vec()), {}});
      }
      part.begin = share->begin;
      contents[place->second.entry].parts.push_back(part);
      place->second.missing -= share->end - share->begin;
    }
  }
  for (const auto& [name, whole] : shared) {
    SC_CHECK(whole.missing == 0, "the ranks together have all shares of " + name);
  }
  return contents;
}

at::Tensor joined(const StateEntry& entry, const std::vector<at::Tensor>& parts) {
  if (parts.size() == 1 && parts[0].sizes() == at::IntArrayRef(entry.shape)) {
    return parts[0];
  }
  at::Tensor whole = at::empty(entry.shape, parts.at(0).options());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    whole.view(-1).narrow(0, entry.parts[i].begin, parts[i].numel()).copy_(parts[i].view(-1));
  }
  return whole;
}

}  // namespace stagecraft
