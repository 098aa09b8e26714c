#include "stagecraft/base/files/metrics_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/event_records.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/base/files/write_all.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTableName = "metrics.csv";
constexpr std::string_view kStepColumn = "step";

std::string in_folder(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

[[noreturn]] void unwritable_metrics(const std::string& path, int error) {
  throw Error(Errc::UsageFile,
              fmt::format("'{}' cannot be written: {}; name another folder or make room",
                          path,
                          std::generic_category().message(error)));
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Returns a name in TensorBoard's form that no other file has.
std::string events_name() {
  static std::atomic<int> number{0};
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) {
    host = {"host"};
  }
  return fmt::format("events.out.tfevents.{:010}.{}.{}.{}",
                     static_cast<std::int64_t>(now()),
                     host.data(),
                     getpid(),
                     number++);
}

void check_columns(const std::vector<std::string>& columns) {
  for (const std::string& name : columns) {
    if (name.empty() || name == kStepColumn || name.find_first_of(",\"\r\n") != std::string::npos ||
        std::ranges::count(columns, name) > 1) {
      throw Error(Errc::UsageArgument,
                  fmt::format("expected column names that differ from each other and from 'step', "
                              "without commas, quotes and line ends; found '{}'",
                              name));
    }
  }
}

std::vector<std::string> split_row(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream stream(row);
  for (std::string cell; std::getline(stream, cell, ',');) {
    cells.push_back(cell);
  }
  return cells;
}

std::optional<std::int64_t> step_of(const std::string& row) {
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(row.data(), row.data() + row.size(), step);
  return error == std::errc() && end != row.data() + row.size() && *end == ',' ? std::optional(step)
                                                                               : std::nullopt;
}

/// Holds a table as it is before a run adds to it.
struct Table {
  std::vector<std::string> columns;
  std::string rows;
};

/// Reads the rows of the steps made. Skips a row without a line end, which the end of a process cut
/// short. Keeps MW-2.
Table read_table(const std::string& path, std::int64_t steps_made) {
  Table table;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!file || !std::getline(file, line) || file.eof()) {
    return table;
  }
  table.columns = split_row(line);
  if (table.columns.empty() || table.columns.front() != kStepColumn) {
    throw Error(Errc::UsageFile,
                fmt::format("expected the metrics of a run in '{}', whose first column is 'step', "
                            "found '{}'; name another folder",
                            path,
                            line));
  }
  table.columns.erase(table.columns.begin());
  while (std::getline(file, line) && !file.eof()) {
    if (const auto step = step_of(line); step && *step <= steps_made) {
      table.rows += line + "\n";
    }
  }
  return table;
}

/// Returns the rows with empty cells at the end: the table may have more columns by now.
std::string padded(const std::string& rows, std::size_t cells) {
  std::string result;
  std::istringstream stream(rows);
  for (std::string row; std::getline(stream, row);) {
    const auto commas = static_cast<std::size_t>(std::ranges::count(row, ','));
    result += row + std::string(commas < cells ? cells - commas : 0, ',') + "\n";
  }
  return result;
}

}  // namespace

MetricsWriter::MetricsWriter(const std::string& folder,
                             const std::vector<std::string>& columns,
                             std::int64_t steps_made)
    : folder_(folder) {
  check_columns(columns);
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) {
    unwritable_metrics(folder, failure.value());
  }
  const std::string path = in_folder(folder, kTableName);
  Table table = read_table(path, steps_made);
  columns_ = std::move(table.columns);
  for (const std::string& name : columns) {
    if (std::ranges::find(columns_, name) == columns_.end()) {
      columns_.push_back(name);
    }
  }
  {
    WholeFile file(path);
    file.write(fmt::format("{},{}\n", kStepColumn, fmt::join(columns_, ",")));
    file.write(padded(table.rows, columns_.size()));
    file.publish();
  }
  table_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (table_ < 0) {
    unwritable_metrics(path, errno);
  }
  try {
    events_name_ = events_name();
    const std::string events = in_folder(folder, events_name_);
    events_ = open(events.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (events_ < 0) {
      unwritable_metrics(events, errno);
    }
    append(events_, events_name_, version_record(now()) + restart_record(now(), steps_made + 1));
  } catch (...) {
    close(table_);
    if (events_ >= 0) {
      close(events_);
    }
    throw;
  }
}

MetricsWriter::~MetricsWriter() {
  close(table_);
  close(events_);
}

void MetricsWriter::write(std::int64_t step, const Metrics& values) {
  std::vector<std::string> cells(columns_.size());
  for (const auto& [name, value] : values) {
    const auto column = std::ranges::find(columns_, name);
    if (column == columns_.end()) {
      throw Error(Errc::UsageArgument,
                  fmt::format("expected one of the columns {}, found '{}'; name it when the writer "
                              "is made",
                              fmt::join(columns_, ", "),
                              name));
    }
    cells[static_cast<std::size_t>(column - columns_.begin())] = fmt::format("{}", value);
  }
  append(table_, kTableName, fmt::format("{},{}\n", step, fmt::join(cells, ",")));
  append(events_, events_name_, scalars_record(now(), step, values));
}

void MetricsWriter::append(int file, const std::string& name, const std::string& bytes) const {
  if (const int error = write_all(file, bytes); error != 0) {
    unwritable_metrics(in_folder(folder_, name), error);
  }
}

}  // namespace stagecraft
