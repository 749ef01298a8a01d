// Figures as every report of PrefixGuard writes them (see reports/figures.py): unknown is `?`, an estimate carries `~`.

const SIGNS = { USD: "$", EUR: "€", GBP: "£" };

/** A number with so many decimals, halves to the even neighbour, as Python rounds. */
function fixed(value, digits) {
  const exact = value.toFixed(Math.min(100, digits + 60));
  const rest = digits ? exact.slice(exact.indexOf(".") + 1 + digits) : exact.slice(exact.indexOf(".") + 1);
  const text = value.toFixed(digits);
  if (!/^50*$/.test(rest)) return text;
  const down = digits ? exact.slice(0, exact.indexOf(".") + 1 + digits) : exact.slice(0, exact.indexOf("."));
  return Number(down.at(-1)) % 2 ? text : down;
}

/** A token count in at most five characters: 950, 9.5k, 95k, 1.2M. */
export function tokens(count, estimated = false) {
  if (count === null || count === undefined) return "?";
  const mark = estimated ? "~" : "";
  if (Math.abs(count) < 1000) return `${mark}${count}`;
  for (const [factor, unit] of [[1e3, "k"], [1e6, "M"], [1e9, "G"]]) {
    if (Math.abs(count) < factor * 999.5 || unit === "G") {
      const value = count / factor;
      return `${mark}${fixed(value, Math.abs(value) < 99.95 ? 1 : 0)}${unit}`;
    }
  }
  return "?";
}

/** A token count in full: 12,345. */
export function exactTokens(count, estimated = false) {
  if (count === null || count === undefined) return "?";
  return `${estimated && count ? "~" : ""}${count.toLocaleString("en-US")}`;
}

/** A share of one in per cent, never rounded up to 100 % nor down to 0 %. */
export function percent(share) {
  if (share === null || share === undefined) return "?";
  const value = share * 100;
  if (value > 99 && value < 100) return `${fixed(Math.min(value, 99.9), 1)} %`;
  if (value > 0 && value < 1) return `${fixed(Math.max(value, 0.1), 1)} %`;
  return `${fixed(value, 0)} %`;
}

/** An amount of money. cost: as in `prefixguard-analysis/1`, for its currency and whether it is estimated. */
export function money(amount, cost) {
  if (amount === null || amount === undefined) return "?";
  const size = Math.abs(amount);
  const sign = SIGNS[cost.currency];
  let body;
  if (size > 0 && size < 0.00005) {
    body = sign ? `<${sign}0.0001` : `<0.0001 ${cost.currency}`;
  } else {
    const digits = size >= 1 || size === 0 ? 2 : size >= 0.1 ? 3 : 4;
    const [whole, part] = fixed(size, digits).split(".");
    const number = `${Number(whole).toLocaleString("en-US")}.${part}`;
    body = sign ? `${sign}${number}` : `${number} ${cost.currency}`;
  }
  return `${cost.estimated ? "~" : ""}${amount < 0 ? "-" : ""}${body}`;
}

/** What was paid: one amount, or the range that it lies in. */
export function bill(cost) {
  const { least = null, most = null } = cost;
  if (least === null || most === null || money(least, cost) === money(most, cost)) return money(cost.actual, cost);
  return `${money(least, cost)} to ${money(most, cost).replace(/^~/, "")}`;
}

/** A duration in seconds, from milliseconds. */
export function seconds(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "?";
  const value = milliseconds / 1000;
  return `${fixed(value, value < 1 ? 2 : value < 100 ? 1 : 0)} s`;
}

/** A span of time, from seconds: 45 s, 3 min 20 s, 2 h 5 min. */
export function duration(value) {
  const whole = Math.max(0, Number(fixed(value, 0)));
  if (whole < 60) return `${whole} s`;
  let minutes = Math.floor(whole / 60);
  const rest = whole % 60;
  if (minutes < 60) return rest ? `${minutes} min ${rest} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  minutes %= 60;
  return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
}

/** A moment within a session, from seconds since its start: 3:20, 1:02:05. */
export function clock(value) {
  const whole = Math.max(0, Math.trunc(value));
  const two = (n) => String(n).padStart(2, "0");
  const [hours, rest] = [Math.floor(whole / 3600), whole % 3600];
  const [minutes, last] = [Math.floor(rest / 60), rest % 60];
  return hours ? `${hours}:${two(minutes)}:${two(last)}` : `${minutes}:${two(last)}`;
}

/** `1 turn`, `2 turns`. */
export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}

/** A predicted interval of cached tokens: `8.2k`, or `7.9k to 8.2k`. */
export function predicted([low, high]) {
  const [one, other] = [tokens(low), tokens(high)];
  return one === other ? one : `${one} to ${other}`;
}

/** A day and a time of day, where the reader is. */
export function moment(epochSeconds) {
  const date = new Date(epochSeconds * 1000);
  const two = (n) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}
