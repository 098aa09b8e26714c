/// Unsupported is one part of a model's file that cannot be trained here, with its place.
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

struct Unsupported {
  std::string node;  ///< its name in the file, "index_put_3"; empty if it is not a node
  std::string path;  ///< of the module that contains it, "layers.0.attention"; may be empty
  std::string why;
};

/// Returns "node index_put_3 (in layers.0.attention): why".
[[nodiscard]] std::string to_string(const Unsupported& unsupported);

/// Refuses the file. Errors: CompileCapture with all parts, if there are any.
void refuse_unsupported(const std::string& file, const std::vector<Unsupported>& all);

}  // namespace stagecraft
