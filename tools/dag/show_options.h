/// DagShowOptions holds the options of `stagecraft dag show` that need no model. Both programs of
/// the command have them: the one without LibTorch (show.h), and the one that adds the options of
/// a model (model/show_model.h).
#pragma once

#include <optional>
#include <string>

#include "stagecraft/scheduler/dag/timeline/dag_timeline.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace CLI {
class App;
}

namespace stagecraft::tools {

inline constexpr const char* kShowDagCommand = "stagecraft dag show";

struct DagShowOptions {
  std::string file;
  ReadOptions read{.command = kShowDagCommand};
  int stages = 0;        ///< 0: as many as the strategy places
  int microbatches = 0;  ///< 0: as many as the strategy's split says
  bool json = false;
  std::string output;     ///< of text or JSON; empty: standard output
  std::string svg, html;  ///< files to write instead of text
  CostOptions given;
  double exchange = 0;            ///< as in DagCosts
  std::optional<DagCosts> costs;  ///< of the options above; none: no times are shown

  /// Returns whether text or JSON is printed.
  [[nodiscard]] bool prints() const { return json || (svg.empty() && html.empty()); }
};

/// Adds the options and the note below them. `options` must outlive the parse.
void add_dag_show_options(CLI::App& app, DagShowOptions& options);

/// Judges the options together after the parsing, and reads the costs.
/// Errors: UsageArgument for two outputs in one file, and for --output without an output; those of
/// costs_of().
void complete_dag_show_options(const CLI::App& app, DagShowOptions& options, Console& console);

}  // namespace stagecraft::tools
