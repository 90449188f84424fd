/// Dates in headers, RFC 9110 section 5.6.7.
public enum HTTPDate {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// The Unix time of a date in the form that servers must send: `Sun, 06 Nov 1994 08:49:37 GMT`. The name of the day is not compared with
  /// the date.
  /// - Returns: nil for anything else.
  public static func seconds(of text: String) -> Int? {
    let words: [Substring] = text.split(separator: " ")
    guard words.count == 6, words[0].utf8.count == 4, words[0].hasSuffix(","), words[5] == "GMT" else {
      return nil
    }
    guard let day = number(words[1]), (1...31).contains(day),
      let month = months.firstIndex(of: String(words[2])),
      words[3].utf8.count == 4, let year = number(words[3]), year >= 1970,
      let time = secondOfDay(words[4])
    else { return nil }
    return days(year, month + 1, day) * 86_400 + time
  }

  /// A date in that form.
  /// - Parameter seconds: the Unix time, 0 or later.
  public static func text(ofSeconds seconds: Int) -> String {
    let (day, second) = seconds.quotientAndRemainder(dividingBy: 86_400)
    let (year, month, date) = civil(day)
    let names = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    let time = [second / 3_600, second / 60 % 60, second % 60].map(twoDigits).joined(separator: ":")
    return "\(names[day % 7]), \(twoDigits(date)) \(months[month - 1]) \(year) \(time) GMT"
  }

  private static func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }

  private static func secondOfDay(_ text: Substring) -> Int? {
    let parts: [Substring] = text.split(separator: ":", omittingEmptySubsequences: false)
    let numbers = parts.compactMap { number($0) }
    guard parts.count == 3, numbers.count == 3 else { return nil }
    let (hour, minute, second) = (numbers[0], numbers[1], numbers[2])
    // 60: a leap second.
    guard hour < 24, minute < 60, second <= 60 else { return nil }
    return hour * 3_600 + minute * 60 + second
  }

  /// Days since 1 January 1970, as `days_from_civil` in Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms" counts them, for
  /// years from 1970 on. With years that begin in March a leap day is the last of its year, and every five months before it have 153 days.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let year = month > 2 ? year : year - 1
    let month = month > 2 ? month - 3 : month + 9
    let dayOfYear = (153 * month + 2) / 5 + day - 1
    let leapDays = year / 4 - year / 100 + year / 400
    // 1 March of the year 0 is that many days before 1970.
    return year * 365 + leapDays + dayOfYear - 719_468
  }

  /// The date that is so many days after 1 January 1970: `days` the other way round. Eras of 400 years have 146,097 days.
  private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
    let (era, dayOfEra) = (days + 719_468).quotientAndRemainder(dividingBy: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * month + 2) / 5 + 1
    return (yearOfEra + era * 400 + (month < 10 ? 0 : 1), month < 10 ? month + 3 : month - 9, day)
  }

  /// Digits only, at most nine, or as many nines for more of them.
  static func number(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return text.utf8.count > 9 ? 999_999_999 : Int(text)
  }
}
