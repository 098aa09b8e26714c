/// Schedule is the order of all tasks, as data: one row per pipeline rank, one cell per column.
///
///     0F0 0F1 .   0B0 .   0B1        array form: a cell in column t uses results of columns < t
///     .   1F0 1B0 1F1 1B1 .
///
/// The list form leaves out the bubbles. Workers follow the list form: they wait for data, never
/// for a column. A user, a builder or a text makes it; validate(), simulate() and lowering read it.
/// A value.
/// a list holds no idle cell. to_list() drops them; to_array() (simulate/to_array.h) puts each
///      entry in its earliest column.
/// a schedule may break every rule. validate() reports it; nothing here throws for it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

class Schedule {
 public:
  enum class Form { Array, List };
  using Row = std::vector<Cell>;

  /// Headers holds the statements of a file or a builder in addition to the cells. Absent values
  /// are inferred from the cells.
  struct Headers {
    std::optional<int> rows;
    std::optional<int> stages;
    std::optional<int>
        microbatches;  ///< that a row works on, over all copies in the schedule, in the smallest
                       ///< size
    std::optional<StageGraph> graph;  ///< absent: one chain over the stages
    /// The ranks of each row, which run it side by side. Empty: one rank for each row with a task.
    std::vector<std::vector<Rank>> places = {};
    /// The last row is code of the driver (simulate/driver_row.h). No text form has it.
    bool has_driver_row = false;
  };

  Schedule(std::initializer_list<Row> rows);
  Schedule(Form form, std::vector<Row> rows);
  Schedule(Form form, std::vector<Row> rows, Headers headers);

  /// Reads the text form (formats/text.h). Errors: ScheduleParse with line, column and cell.
  [[nodiscard]] static Schedule parse(std::string_view text);

  [[nodiscard]] Form form() const { return form_; }
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] const Headers& headers() const { return headers_; }
  /// Returns the width of the widest row.
  [[nodiscard]] std::size_t columns() const;

  /// Returns the header's number, or one more than the largest stage seen.
  [[nodiscard]] int stages() const;
  /// Returns the header's number, or one more than the largest microbatch of a forward, times its
  /// stage's size and the replicas.
  [[nodiscard]] int microbatches() const;
  /// Returns the header's graph, or one chain over stages().
  [[nodiscard]] StageGraph stage_graph() const;

  /// Returns the schedule without bubbles; headers stay.
  [[nodiscard]] Schedule to_list() const;
  /// Compares form and cells; headers may differ.
  friend bool operator==(const Schedule& a, const Schedule& b) {
    return a.form_ == b.form_ && a.rows_ == b.rows_;
  }

 private:
  Form form_;
  std::vector<Row> rows_;
  Headers headers_;
  int stages_seen_ = 0;
  int microbatches_seen_ = 0;
};

/// Returns the row's name in drawings: "d0", or "driver".
[[nodiscard]] std::string row_name(const Schedule& schedule, std::size_t row);

/// Returns the text form: header lines if needed, then one line per row. parse() reads it back.
[[nodiscard]] std::string to_string(const Schedule& schedule);

/// The largest numbers that a schedule may name. They keep a typing error from taking memory in
/// proportion.
inline constexpr int kMaxStages = 65536;
inline constexpr int kMaxMicrobatches = 16777216;
inline constexpr int kMaxRanks = 65536;
/// The most cells that are read or laid out, bubbles included. A row has at most kMaxStages.
inline constexpr std::size_t kMaxCells = 16777216;

}  // namespace stagecraft
