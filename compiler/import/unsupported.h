/// Unsupported: one thing in a model's file that cannot be trained here, and where it stands.
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

struct Unsupported {
  std::string node;  ///< its name in the file, "index_put_3"; empty for what is no node
  std::string path;  ///< of the module it stands in, "layers.0.attention"; may be empty
  std::string why;
};

/// "node index_put_3 (in layers.0.attention): why".
[[nodiscard]] std::string to_string(const Unsupported& unsupported);

/// Errors: CompileCapture, with all of them; none where there is none.
void refuse_unsupported(const std::string& file, const std::vector<Unsupported>& all);

}  // namespace stagecraft
