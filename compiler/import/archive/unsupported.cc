#include "stagecraft/compiler/import/archive/unsupported.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

std::string to_string(const Unsupported& unsupported) {
  const auto& [node, path, why] = unsupported;
  if (node.empty()) {
    return why;
  }
  return path.empty() ? fmt::format("node {}: {}", node, why)
                      : fmt::format("node {} (in {}): {}", node, path, why);
}

void refuse_unsupported(const std::string& file, const std::vector<Unsupported>& all) {
  if (all.empty()) {
    return;
  }
  std::string list;
  for (const Unsupported& u : all) {
    list += "\n  " + to_string(u);
  }
  throw Error(Errc::CompileCapture,
              fmt::format("{}: {} of this model {} not supported; change the model and export it "
                          "again:{}",
                          file,
                          all.size() == 1 ? "one thing" : fmt::format("{} things", all.size()),
                          all.size() == 1 ? "is" : "are",
                          list));
}

}  // namespace stagecraft
