/// ModelReport: what `stagecraft import` found out beyond the file, and how it tells all of it.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/import/model_file.h"

namespace stagecraft::tools {

struct ModelReport {
  bool on_zeros = true;          ///< what it was run on was made up
  bool ran = false;              ///< forward and loss, under capture
  std::optional<CutReport> cut;  ///< where one was asked for
  std::string cut_text, costs_text;
};

/// For people: several tables.
[[nodiscard]] std::string to_text(const ModelFile& model, const ModelReport& report);

/// One JSON object, and a newline.
[[nodiscard]] std::string to_json(const ModelFile& model, const ModelReport& report);

}  // namespace stagecraft::tools
