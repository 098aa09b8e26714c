#include "stagecraft/actors/executor/optimizer/state_names.h"

#include <charconv>

#include <fmt/format.h>

#include "stagecraft/base/check.h"

namespace stagecraft {

std::string share_name(std::string_view name, std::int64_t begin, std::int64_t end) {
  return fmt::format("{} [{}, {})", name, begin, end);
}

std::optional<StateShare> share_named(std::string_view name) {
  const std::size_t bracket = name.rfind(" [");
  if (bracket == std::string_view::npos || !name.ends_with(")")) {
    return std::nullopt;
  }
  StateShare share{.name = std::string(name.substr(0, bracket))};
  const char* const last = name.data() + name.size() - 1;
  const auto begin = std::from_chars(name.data() + bracket + 2, last, share.begin);
  if (begin.ec != std::errc() || !std::string_view(begin.ptr, last).starts_with(", ")) {
    return std::nullopt;
  }
  const auto end = std::from_chars(begin.ptr + 2, last, share.end);
  const bool sound =
      end.ec == std::errc() && end.ptr == last && share.begin >= 0 && share.begin < share.end;
  return sound ? std::optional(share) : std::nullopt;
}

at::Tensor tensor_or_share(const std::map<std::string, at::Tensor>& whole,
                           const std::string& name) {
  const auto share = share_named(name);
  const auto found = whole.find(share ? share->name : name);
  SC_CHECK(found != whole.end() && (!share || share->end <= found->second.numel()),
           "a rank lists a tensor that its program does not have: " + name);
  return share ? found->second.contiguous().view(-1).narrow(
                     0, share->begin, share->end - share->begin)
               : found->second;
}

}  // namespace stagecraft
