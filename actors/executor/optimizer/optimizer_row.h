/// OptimizerRow describes an optimizer to the registry: names, settings, state tensors, arithmetic.
///
/// Each optimizer is one source with its header: a record of settings, which users write, and a
/// specialization of OptimizerRow, declared in the header and defined in the source. The headers do
/// not include LibTorch, so that command lines know all settings without it. optimizer_table.h has
/// a line for each optimizer, and the rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft {

enum class SettingRange : std::uint8_t {
  FromZero,  ///< any finite number from 0 on
  Share,     ///< from 0 up to, not including, 1
  Switch,
};

struct SettingInfo {
  std::string_view name;   ///< the name of the record's field
  std::string_view about;  ///< for the help of commands
  SettingRange range = SettingRange::FromZero;
  double below = 0.0;  ///< commands accept smaller values only; 0: they accept the whole range
};

// These settings belong to several optimizers. A setting of one optimizer is in its row.
inline constexpr SettingInfo kLearningRate{"lr", "learning rate"};
inline constexpr SettingInfo kWeightDecay{"weight_decay", "weight decay"};
inline constexpr SettingInfo kBeta1{
    "beta1", "decay rate of the mean of gradients", SettingRange::Share};
inline constexpr SettingInfo kBeta2{
    "beta2", "decay rate of the mean of squared gradients", SettingRange::Share};
inline constexpr SettingInfo kEps{"eps", "number added to the denominator"};
inline constexpr SettingInfo kAmsgrad{
    "amsgrad", "divide by the largest mean of squared gradients so far", SettingRange::Switch};
inline constexpr SettingInfo kMomentum{
    "momentum", "momentum factor", SettingRange::FromZero, /*below=*/1.0};

struct ParameterColumns;  // update_pass.h
struct UpdatePass;

/// OptimizerRow is specialized for the record of each optimizer:
///
///   static constexpr std::string_view kName;    // in checkpoints and on command lines
///   static constexpr std::string_view kRecord;  // the name of the record, for messages
///   static constexpr std::array kSettings;      // OT-1
///   static std::vector<std::string> states(const Record&);  // names of the state tensors
///   static void update(const Record&, const UpdatePass&, ParameterColumns&);
///
/// and what RowDefaults has, if it differs.
template <class Record>
struct OptimizerRow;

struct RowDefaults {
  static constexpr bool kKeepsSquares = false;  // of gradients, in the state
  /// Returns the contradiction between settings, as the text that follows "Record::"; empty if
  /// there is none.
  template <class Record>
  static std::string conflict(const Record&) {
    return "";
  }
  /// Returns the value of all elements of the state before the first step.
  template <class Record>
  static double initial_state(const Record&) {
    return 0.0;
  }
};

}  // namespace stagecraft
