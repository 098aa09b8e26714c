/// Compares drawings with golden texts, which a person has looked at.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {

/// Checks `text` against tests/golden/scheduler/`name`. If STAGECRAFT_UPDATE_GOLDEN is set in the
/// environment, writes the file instead; look at the difference before committing it.
inline void check_golden(const std::string& name, const std::string& text) {
  const std::string path = "tests/golden/scheduler/" + name;
  if (std::getenv("STAGECRAFT_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream golden;
  golden << file.rdbuf();
  INFO("golden file " << path);
  CHECK(text == golden.str());
}

}  // namespace stagecraft
