/// ModelReport holds the findings of `stagecraft import` beyond the file, and writes them.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft::tools {

struct ModelReport {
  bool on_zeros = true;          ///< it ran on made-up inputs
  bool ran = false;              ///< forward and loss, under capture
  std::optional<CutReport> cut;  ///< if one was requested
  std::string cut_text, costs_text;
};

/// Returns several tables for people.
[[nodiscard]] std::string to_text(const ModelFile& model, const ModelReport& report);

/// Returns one JSON object, and a newline.
[[nodiscard]] std::string to_json(const ModelFile& model, const ModelReport& report);

}  // namespace stagecraft::tools
